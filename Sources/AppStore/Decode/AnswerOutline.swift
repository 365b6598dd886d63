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

    /// Returns the string value after `"request_date`, `"request_date_ms` and so on, or after `"latest_receipt`, if the
    /// key's name begins at `name`; nil for every other key.
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

    /// The key on the wire.
    var name: String {
        switch self {
        case .status: "status"
        case .environment: "environment"
        case .exception: "exception"
        case .isRetryable: "is-retryable"
        case .isRetryableUnderscored: "is_retryable"
        case .receipt: "receipt"
        case .latestReceipt: "latest_receipt"
        case .latestReceiptInfo: "latest_receipt_info"
        case .latestExpiredReceiptInfo: "latest_expired_receipt_info"
        case .pendingRenewalInfo: "pending_renewal_info"
        case .bundleID: "bundle_id"
        case .bid: "bid"
        case .inApp: "in_app"
        case .quantity: "quantity"
        case .productID: "product_id"
        case .transactionID: "transaction_id"
        case .originalTransactionID: "original_transaction_id"
        case .webOrderLineItemID: "web_order_line_item_id"
        case .cancellationReason: "cancellation_reason"
        case .isTrialPeriod: "is_trial_period"
        case .isInIntroOfferPeriod: "is_in_intro_offer_period"
        case .isUpgraded: "is_upgraded"
        case .promotionalOfferID: "promotional_offer_id"
        case .offerCodeRefName: "offer_code_ref_name"
        case .subscriptionGroupIdentifier: "subscription_group_identifier"
        case .ownershipType: "in_app_ownership_type"
        case .appAccountToken: "app_account_token"
        case .autoRenewStatus: "auto_renew_status"
        case .autoRenewProductID: "auto_renew_product_id"
        case .expirationIntent: "expiration_intent"
        case .isInBillingRetryPeriod: "is_in_billing_retry_period"
        case .priceConsentStatus: "price_consent_status"
        case .priceIncreaseStatus: "price_increase_status"
        }
    }

    /// The slot of this field in `LenientFields`.
    var slot: Int { rawValue }
}

/// The instants we read. Each has up to four members, one for every form in which Apple writes it.
enum AnswerDate: Int, CaseIterable {
    case receiptCreation, request, purchase, originalPurchase, expires, cancellation, gracePeriodExpires

    /// The forms, in storage order.
    enum Form: Int, CaseIterable {
        case plain, milliseconds, pacific, formatted

        var suffix: String {
            switch self {
            case .plain: ""
            case .milliseconds: "_ms"
            case .pacific: "_pst"
            case .formatted: "_formatted"
            }
        }
    }

    /// The key of the plain form on the wire.
    var name: String {
        switch self {
        case .receiptCreation: "receipt_creation_date"
        case .request: "request_date"
        case .purchase: "purchase_date"
        case .originalPurchase: "original_purchase_date"
        case .expires: "expires_date"
        case .cancellation: "cancellation_date"
        case .gracePeriodExpires: "grace_period_expires_date"
        }
    }

    /// Returns the slot of one form in `LenientFields`: after all the plain fields.
    func slot(_ form: Form) -> Int {
        AnswerField.allCases.count + rawValue * Form.allCases.count + form.rawValue
    }
}

/// Finds the slot of a key. Every key of every row is looked up once, so names are grouped by length and compared in
/// words of eight bytes.
final class FieldNames: Sendable {
    static let known = FieldNames()

    /// The number of slots.
    let count: Int
    /// The names by length.
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

    /// Returns the slot of a key; nil if the key is not read.
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

/// Determines, from the rows of the same answer, which subscription a renewal without an original transaction id
/// belongs to. The rows are searched once, and only on demand.
struct KnownSubscriptions {
    private let rows: [TransactionRow]

    /// Creates the lookup over `rows`.
    init(_ rows: [TransactionRow]) {
        self.rows = rows
    }

    /// Returns the product of the row that ends last, in the subscription `original` or, if that is nil, in all rows.
    mutating func newestProduct(of original: OriginalTransactionID?) -> ProductID? {
        guard let original else { return rows.max(by: Self.endsBefore)?.productID }
        return newest[original]?.productID
    }

    /// Returns the one subscription with this product; nil if there is none or more than one.
    mutating func onlySubscription(of product: ProductID) -> OriginalTransactionID? {
        guard let originals = originals[product], originals.count == 1 else { return nil }
        return originals.first
    }

    private lazy var newest = Dictionary(grouping: rows, by: \.originalTransactionID)
        .compactMapValues { $0.max(by: Self.endsBefore) }

    private lazy var originals = Dictionary(grouping: rows, by: \.productID)
        .mapValues { Set($0.map(\.originalTransactionID)) }

    private static func endsBefore(_ one: TransactionRow, _ other: TransactionRow) -> Bool {
        (one.expiresAt ?? .undated, one.purchasedAt) < (other.expiresAt ?? .undated, other.purchasedAt)
    }
}

/// A body that is not a verifyReceipt answer. It says nothing about the receipt: ask again.
package struct AnswerUnreadable: Error, Sendable, Hashable, CustomStringConvertible {
    /// The actual content of the body, as half a sentence: "an empty body".
    package let reason: String

    /// Creates the error for a body that is not an answer, because it is `reason`.
    package init(_ reason: String) {
        self.reason = reason
    }

    /// The error in one sentence for a person.
    package var description: String { "Not an App Store answer: \(reason)." }
}
