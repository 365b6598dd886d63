import Foundation
package import Subscriptions

/// What one pass over the bytes of an answer shows without decoding it.
package struct AnswerOutline: Sendable, Equatable {
    /// The parts of the body that stay the same between two answers of the same meaning: everything except the values
    /// of `request_date`, its other forms, and `latest_receipt`.
    package private(set) var lastingParts: [Range<Int>] = []
    /// The value of the body's only `request_date_ms`; nil if there is none, or more than one.
    package private(set) var requestedAt: Instant?
    /// Whether a `latest_receipt` has a text.
    package private(set) var holdsLatestReceipt = false
    private var statuses = 0
    private var zeroStatuses = 0
    private var requestInstants = 0

    /// Whether the body's only `status` is 0, wherever it stands.
    package var saysGenuine: Bool { statuses == 1 && zeroStatuses == 1 }

    init(of body: [UInt8]) {
        body.withUnsafeBytes { bytes in
            var kept = 0
            var position = 0
            while let quote = bytes.firstIndex(of: UInt8(ascii: "\""), from: position) {
                position = quote + 1
                if bytes.holds("status\"", at: position) {
                    statuses += 1
                    zeroStatuses += bytes.holdsZero(after: position + 7) ? 1 : 0
                } else if let value = passingValue(ofKeyAt: position, in: bytes) {
                    lastingParts.append(kept..<value.lowerBound)
                    kept = value.upperBound
                    position = value.upperBound
                }
            }
            lastingParts.append(kept..<bytes.count)
        }
        if requestInstants != 1 { requestedAt = nil }
    }

    /// Returns the string value of the key at `name` if it is `request_date`, a form of that, or `latest_receipt`.
    private mutating func passingValue(ofKeyAt name: Int, in bytes: UnsafeRawBufferPointer) -> Range<Int>? {
        if bytes.holds("request_date", at: name) {
            guard let end = bytes.firstIndex(of: UInt8(ascii: "\""), from: name) else { return nil }
            let value = bytes.stringValue(after: end + 1)
            if bytes.holds("request_date_ms\"", at: name) {
                requestInstants += 1
                let milliseconds = value.flatMap {
                    Int64(String(decoding: bytes[$0.dropFirst().dropLast()], as: UTF8.self))
                }
                requestedAt = milliseconds.flatMap { $0 > 0 ? Instant(milliseconds: $0) : nil }
            }
            return value
        }
        guard bytes.holds("latest_receipt\"", at: name), let value = bytes.stringValue(after: name + 15) else {
            return nil
        }
        holdsLatestReceipt = true
        return value
    }
}

extension UnsafeRawBufferPointer {
    /// Returns the string that follows a colon, including its quotes.
    fileprivate func stringValue(after index: Int) -> Range<Int>? {
        guard let start = value(after: index), self[start] == UInt8(ascii: "\"") else { return nil }
        return firstIndex(of: UInt8(ascii: "\""), from: start + 1).map { start..<($0 + 1) }
    }

    /// Whether the number 0 follows a colon.
    fileprivate func holdsZero(after index: Int) -> Bool {
        guard let start = value(after: index), self[start] == UInt8(ascii: "0"), start + 1 < count else { return false }
        return [UInt8(ascii: ","), UInt8(ascii: "}"), UInt8(ascii: " "), UInt8(ascii: "\n")].contains(self[start + 1])
    }

    /// Returns where the value after a colon begins.
    private func value(after index: Int) -> Int? {
        var start = index
        while start < count, self[start] == UInt8(ascii: ":") || self[start] == UInt8(ascii: " ") { start += 1 }
        return start > index && start < count ? start : nil
    }

    fileprivate func holds(_ text: StaticString, at index: Int) -> Bool {
        guard index + text.utf8CodeUnitCount <= count, let base = baseAddress else { return false }
        return memcmp(base + index, text.utf8Start, text.utf8CodeUnitCount) == 0
    }

    /// Uses memchr(3), because the newest receipt alone has thousands of bytes without a quote.
    fileprivate func firstIndex(of byte: UInt8, from start: Int) -> Int? {
        guard start < count, let base = baseAddress, let found = memchr(base + start, Int32(byte), count - start)
        else { return nil }
        return UnsafeRawPointer(found) - base
    }
}

/// The members we read from Apple's objects, wherever they occur. Dates are `AnswerDate`.
enum AnswerField: Int, CaseIterable {
    // The answer.
    case status, environment, exception, isRetryable, isRetryableUnderscored
    case receipt, latestReceipt, latestReceiptInfo, latestExpiredReceiptInfo, pendingRenewalInfo
    // The receipt.
    case bundleID, bid, inApp
    // A transaction.
    case quantity, productID, transactionID, originalTransactionID, webOrderLineItemID, cancellationReason
    case isTrialPeriod, isInIntroOfferPeriod, isUpgraded, promotionalOfferID, offerCodeRefName
    case subscriptionGroupIdentifier, ownershipType, appAccountToken
    // A renewal.
    case autoRenewStatus, autoRenewProductID, expirationIntent, isInBillingRetryPeriod
    case priceConsentStatus, priceIncreaseStatus

    /// The keys on the wire, in the order of the cases.
    private static let names = [
        "status", "environment", "exception", "is-retryable", "is_retryable",
        "receipt", "latest_receipt", "latest_receipt_info", "latest_expired_receipt_info", "pending_renewal_info",

        "bundle_id", "bid", "in_app",

        "quantity", "product_id", "transaction_id", "original_transaction_id", "web_order_line_item_id",
        "cancellation_reason", "is_trial_period", "is_in_intro_offer_period", "is_upgraded", "promotional_offer_id",
        "offer_code_ref_name", "subscription_group_identifier", "in_app_ownership_type", "app_account_token",

        "auto_renew_status", "auto_renew_product_id", "expiration_intent", "is_in_billing_retry_period",
        "price_consent_status", "price_increase_status",
    ]

    var name: String { Self.names[rawValue] }

    /// The slot of this field in `LenientFields`.
    var slot: Int { rawValue }
}

/// The instants we read. Each has up to four members, one for every form in which Apple writes it.
enum AnswerDate: Int, CaseIterable {
    case receiptCreation, request, purchase, originalPurchase, expires, cancellation, gracePeriodExpires

    /// The forms, in storage order.
    enum Form: Int, CaseIterable {
        case plain, milliseconds, pacific, formatted

        var suffix: String { ["", "_ms", "_pst", "_formatted"][rawValue] }
    }

    /// The keys of the plain form on the wire, in the order of the cases.
    private static let names = [
        "receipt_creation_date", "request_date", "purchase_date", "original_purchase_date", "expires_date",
        "cancellation_date", "grace_period_expires_date",
    ]

    var name: String { Self.names[rawValue] }

    /// Returns the slot of one form in `LenientFields`: after all the plain fields.
    func slot(_ form: Form) -> Int {
        AnswerField.allCases.count + rawValue * Form.allCases.count + form.rawValue
    }
}

/// Finds the slot of a key. Each key of each row is looked up: names are grouped by length, and compared as `KeyWords`.
final class FieldNames: Sendable {
    static let known = FieldNames()

    let count: Int
    private let names: [(key: KeyWords, slot: Int)]
    /// The range of `names` for every length.
    private let groups: [Range<Int>]

    private init() {
        var spelled = AnswerField.allCases.map { (name: Array($0.name.utf8), slot: $0.slot) }
        for date in AnswerDate.allCases {
            for form in AnswerDate.Form.allCases {
                spelled.append((Array((date.name + form.suffix).utf8), date.slot(form)))
            }
        }
        let byLength = (0...KeyWords.bytesMax).map { length in spelled.filter { $0.name.count == length } }
        var groups: [Range<Int>] = []
        for group in byLength {
            let start = groups.last?.upperBound ?? 0
            groups.append(start..<(start + group.count))
        }
        count = spelled.count
        self.groups = groups
        names = byLength.joined().map { name, slot in (name.withUnsafeBytes { KeyWords($0) }, slot) }
    }

    func slot(of key: UnsafeRawBufferPointer) -> Int? {
        guard key.count <= KeyWords.bytesMax, !groups[key.count].isEmpty else { return nil }
        let words = KeyWords(key)
        for place in groups[key.count] where names[place].key == words { return names[place].slot }
        return nil
    }
}

/// All bytes of a key as numbers. Keys of the same length are equal if these numbers are.
struct KeyWords: Equatable {
    /// The most bytes of a key; longer keys are never read.
    static let bytesMax = 40

    private let words: (UInt64, UInt64, UInt64, UInt64, UInt64)

    /// Creates the words of a key of at most `bytesMax` bytes. The words at its end overlap.
    init(_ key: UnsafeRawBufferPointer) {
        guard key.count >= 8 else {
            words = (key.reduce(0) { $0 << 8 | UInt64($1) }, 0, 0, 0, 0)
            return
        }
        func word(_ place: Int) -> UInt64 {
            key.loadUnaligned(fromByteOffset: min(place * 8, key.count - 8), as: UInt64.self)
        }
        words = (word(0), word(1), word(2), word(3), word(4))
    }

    static func == (one: KeyWords, other: KeyWords) -> Bool { one.words == other.words }
}
