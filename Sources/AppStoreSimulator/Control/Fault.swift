import Foundation

/// What a fault or a lag is about.
package enum StoreChannel: String, Codable, Sendable, CaseIterable {
    /// verifyReceipt.
    case verifyReceipt = "verify_receipt"
    /// The App Store Server API.
    case serverAPI = "server_api"
}

/// A deliberate failure of the store for a share of the calls of verifyReceipt or of the Server API.
package struct Fault: Decodable, Sendable {
    /// The kind of failure.
    package enum Kind: String, Codable, Sendable, CaseIterable {
        /// A body with only a status: `status`, or 21005 unless given; of the Server API an error with that code, or
        /// 5000001.
        case status
        /// An HTTP error: `code`, or 503 unless given. The body is plain text for 500 and a page of HTML for the
        /// others; 429 carries `Retry-After`.
        case http
        /// No response; the connection closes after `seconds`, 60 unless given.
        case hang
        /// The correct response, cut in the middle.
        case truncate
        /// HTTP 200 with a page of HTML.
        case html
        /// The correct response after `seconds`, 5 unless given.
        case slow
        /// The correct response in small pieces over `seconds`, 5 unless given.
        case drip
        /// Of the Server API: signed texts whose signatures are altered.
        case forged
        /// Of the Server API: signed texts about another app.
        case foreign
    }

    /// The longest hang, wait or drip, in seconds.
    package static let secondsMax = 86_400.0

    /// The kind of failure.
    package var kind: Kind
    /// What it is about.
    package var channel = StoreChannel.verifyReceipt
    /// The share of the calls, 0 to 1.
    package var share: Double
    /// For `status`.
    package var status: Int?
    /// For `status` of 21100 to 21199: Apple's `is-retryable`.
    package var isRetryable: Bool?
    /// For `http`.
    package var code: Int?
    /// For `hang`, `slow` and `drip`, and the `Retry-After` of 429, which is 1 unless given.
    package var seconds: Double?
    /// The end of the fault in milliseconds since 1970; nil means never.
    package var untilMilliseconds: Int64?

    /// Creates a fault for all calls without an end; the properties can change that.
    package init(_ kind: Kind, share: Double = 1) {
        self.kind = kind
        self.share = share
    }

    enum CodingKeys: String, CodingKey {
        case kind, channel, share, status, code, seconds, until
        case isRetryable = "is_retryable"
    }

    /// Reads the body of the control call. `until` is milliseconds or RFC 3339 text.
    package init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        kind = try values.decode(Kind.self, forKey: .kind)
        channel = try values.decodeIfPresent(StoreChannel.self, forKey: .channel) ?? .verifyReceipt
        share = try values.decodeIfPresent(Double.self, forKey: .share) ?? 1
        status = try values.decodeIfPresent(Int.self, forKey: .status)
        isRetryable = try values.decodeIfPresent(Bool.self, forKey: .isRetryable)
        code = try values.decodeIfPresent(Int.self, forKey: .code)
        seconds = try values.decodeIfPresent(Double.self, forKey: .seconds)
        guard values.contains(.until) else { return }
        if let milliseconds = try? values.decode(Int64.self, forKey: .until) {
            untilMilliseconds = milliseconds
            return
        }
        let text = try values.decode(String.self, forKey: .until)
        let date = try Date(text, strategy: .iso8601)
        untilMilliseconds = Int64(date.timeIntervalSince1970 * 1000)
    }
}
