import Foundation
import Synchronization

/// What a fault or a lag is about.
package enum StoreChannel: String, Codable, Sendable, CaseIterable {
    case verifyReceipt = "verify_receipt"
    /// The App Store Server API.
    case serverAPI = "server_api"
}

/// A deliberate failure of the store for a share of the calls of verifyReceipt or of the Server API.
package struct Fault: Decodable, Sendable {
    /// The kind of failure.
    package enum Kind: String, Codable, Sendable, CaseIterable {
        /// A body with only `status`, 21005 unless given; of the Server API an error with that code, or 5000001.
        case status
        /// HTTP `code`, 503 unless given, with plain text for 500, else a page of HTML; 429 carries `Retry-After`.
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
        let number = try? values.decode(Int64.self, forKey: .until)
        guard let until = StoreTime(named: try number.map { String($0) } ?? values.decode(String.self, forKey: .until))
        else { throw DecodingError.dataCorruptedError(forKey: .until, in: values, debugDescription: StoreTime.rule) }
        untilMilliseconds = until.milliseconds
    }
}

/// An error for a list of fault kinds that cannot be read.
package struct UnknownFaultKind: Error, Sendable, CustomStringConvertible {
    /// The problem, in a sentence.
    package let description: String
}

extension Fault {
    /// The faults of Apple and the network on a bad day: temporary statuses, HTTP errors, pages instead of responses,
    /// and responses that are missing, late, dripping or truncated.
    package static let usualKinds =
        "21002=2,21005=2,21009=1,503=2,500=1,429=1,html=1,truncate=1,hang=1,slow=1,drip=1"

    /// Returns faults that hit the share `rate` of all calls together, 0 to 1, divided by weight.
    ///
    /// `kinds` is a list like `21005=3,503=2,hang`: an Apple status, an HTTP code, or one of `html truncate hang slow
    /// drip`, each with a weight that is 1 unless given. `seconds` is how long they hang, wait or drip. Throws
    /// ``UnknownFaultKind`` for any other kind.
    package static func mixed(
        rate: Double, kinds: String = usualKinds, seconds: Double = 5
    ) throws(UnknownFaultKind) -> [Fault] {
        var wanted: [(fault: Fault, weight: Double)] = []
        for entry in kinds.split(separator: ",") {
            let parts = entry.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard let name = parts.first, let fault = Fault(named: String(name), seconds: seconds) else {
                throw UnknownFaultKind(description: "There is no fault called \(entry).")
            }
            guard let weight = parts.count == 1 ? 1 : Double(parts[1]), weight > 0, weight.isFinite else {
                throw UnknownFaultKind(description: "The weight in \(entry) is not a number above 0.")
            }
            wanted.append((fault, weight))
        }
        guard !wanted.isEmpty else { throw UnknownFaultKind(description: "No fault is named.") }
        let sum = wanted.reduce(0) { $0 + $1.weight }
        return wanted.map { fault, weight in
            var fault = fault
            fault.share = rate * weight / sum
            return fault
        }
    }

    private init?(named name: String, seconds: Double) {
        switch Int(name) {
        case .some(let status) where (21000...21199).contains(status):
            self.init(.status)
            self.status = status
        case .some(let code) where (400...599).contains(code):
            self.init(.http)
            self.code = code
        case .some: return nil
        case nil:
            guard let kind = Kind(rawValue: name), ![.status, .http, .forged, .foreign].contains(kind) else {
                return nil
            }
            self.init(kind)
            self.seconds = seconds
        }
    }
}

/// The faults and delays that a channel has. The seed and the number of a call decide its fault.
final class StoreConditions: Sendable {
    private struct Orders: Sendable {
        var faults: [Fault]
        var lags: [Lag] = []
    }

    private let seed: UInt64
    private let orders: Mutex<Orders>
    private let hasNoFaults: Atomic<Bool>
    private let hasNoLags = Atomic<Bool>(true)
    private let callCount = Atomic<Int>(0)

    init(seed: UInt64, faults: [Fault] = []) {
        self.seed = seed
        orders = Mutex(Orders(faults: faults))
        hasNoFaults = Atomic(faults.isEmpty)
    }

    var faults: [Fault] { orders.withLock { $0.faults } }

    var lags: [Lag] { orders.withLock { $0.lags } }

    /// Whether there are no faults at present.
    var isQuiet: Bool { hasNoFaults.load(ordering: .relaxed) }

    var calls: Int { callCount.load(ordering: .relaxed) }

    func add(_ fault: Fault) { change { $0.faults.append(fault) } }

    func add(_ lag: Lag) { change { $0.lags.append(lag) } }

    func clearFaults() { change { $0.faults = [] } }

    func clearLags() { change { $0.lags = [] } }

    /// Returns the number of the next call, from 1.
    func nextCall() -> UInt64 { UInt64(callCount.wrappingAdd(1, ordering: .relaxed).newValue) }

    /// Returns the fault of a call. Shares add up, in the order in which the faults were added.
    func fault(ofCall call: UInt64, at now: StoreTime) -> Fault? {
        guard !isQuiet else { return nil }
        change { orders in
            orders.faults.removeAll { fault in fault.untilMilliseconds.map { $0 <= now.milliseconds } ?? false }
        }
        var numbers = SeededGenerator(seed: seed ^ 0xFA17, stream: call)
        var draw = ShareDraw(rest: numbers.unit())
        return faults.first { draw.falls(on: $0.share) }
    }

    /// Returns the delay of the answers about an account, in milliseconds. The newest one that is about it decides.
    func lag(of account: Int) -> Int64 {
        guard !hasNoLags.load(ordering: .relaxed) else { return 0 }
        var numbers = SeededGenerator(seed: seed ^ 0x1A66, stream: UInt64(account))
        let draw = numbers.unit()
        let lag = lags.last { lag in
            guard let customer = lag.customer else { return draw < lag.share ?? 1 }
            return CustomerName.index(of: customer) == account
        }
        return Int64((lag?.seconds ?? 0) * 1000)
    }

    /// Changes what a test ordered, and notes whether there is any of it.
    private func change(_ body: (inout Orders) -> Void) {
        orders.withLock { orders in
            body(&orders)
            hasNoFaults.store(orders.faults.isEmpty, ordering: .relaxed)
            hasNoLags.store(orders.lags.isEmpty, ordering: .relaxed)
        }
    }
}

extension Fault {
    /// Returns a reply of verifyReceipt as the fault spoils it.
    func applied(to reply: SimulatorReply) -> SimulatorReply {
        var reply = reply
        switch kind {
        case .status:
            let status = Int64(status ?? 21005)
            reply.body = JSONWriter.object(reserving: 64) { json in
                json.number("status", status)
                if (21100...21199).contains(status), let isRetryable { json.boolean("is-retryable", isRetryable) }
            }
        case .http: error(&reply)
        case .hang:
            reply.delivery = .never
            reply.delaySeconds += max(0, seconds ?? 60)
        case .truncate: reply.delivery = .cut(bytes: reply.body.count / 2)
        case .html: reply.body = Self.page
        case .slow: reply.delaySeconds += max(0, seconds ?? 5)
        case .drip: reply.delivery = .dripping(seconds: max(0, seconds ?? 5))
        case .forged, .foreign: break
        }
        return reply
    }

    private static let page = Array("<html><head><title>Http/1.1 Service Unavailable</title></head></html>".utf8)

    /// Turns a reply into an HTTP error.
    private func error(_ reply: inout SimulatorReply) {
        let code = code ?? 503
        reply.code = (400...599).contains(code) ? code : 503
        reply.body = reply.code == 500 ? Array("An Internal Server Error Has Occurred.".utf8) : Self.page
        guard reply.code == 429 else { return }
        reply.headers.append(("Retry-After", String(Int((seconds ?? 1).rounded(.up)))))
    }
}

/// A delay of the answers about some accounts: verifyReceipt, or the Server API, shows them as they were so many
/// seconds ago.
package struct Lag: Codable, Sendable {
    /// The longest delay, in seconds.
    package static let secondsMax = 86_400.0

    package var seconds: Double
    /// What lags; nil means verifyReceipt.
    package var channel: StoreChannel?
    /// The customer of the account; nil means a share of all accounts.
    package var customer: String?
    /// The share of the accounts, 0 to 1, drawn by the seed; nil means all.
    package var share: Double?
}

extension Simulator {
    /// Adds a fault to verifyReceipt or the Server API over HTTP.
    package func add(_ fault: Fault) { conditions(of: fault.channel).add(fault) }

    /// Removes all faults.
    package func clearFaults() {
        conditions.clearFaults()
        serverConditions.clearFaults()
    }

    /// Adds a delay to the answers of verifyReceipt or of the Server API.
    package func add(_ lag: Lag) { conditions(of: lag.channel ?? .verifyReceipt).add(lag) }

    /// Removes all delays.
    package func clearLags() {
        conditions.clearLags()
        serverConditions.clearLags()
    }

    private func conditions(of channel: StoreChannel) -> StoreConditions {
        switch channel {
        case .verifyReceipt: conditions
        case .serverAPI: serverConditions
        }
    }
}
