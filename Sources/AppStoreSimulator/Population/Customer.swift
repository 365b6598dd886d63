/// One Apple account with one subscription, and perhaps the one-time purchase.
struct Customer: Sendable {
    struct Lifetime: Sendable {
        let purchase: Moment
    }

    /// Counts all customers from 0 and is in every id and receipt.
    let index: Int
    let environment: StoreEnvironment
    var life: Life
    let lifetime: Lifetime?
    /// When the receipt that the customer's device sends was made.
    let receiptCreation: Moment

    var name: String { Customer.name(of: index) }
    var ids: CustomerIDs { CustomerIDs(index: index, environment: environment) }

    /// When the store last wrote a new receipt for this account.
    var newestReceiptCreation: Moment {
        max(receiptCreation, life.periods.last?.bookedAt ?? receiptCreation)
    }

    static func name(of index: Int) -> String {
        let digits = String(index)
        return "c" + String(repeating: "0", count: max(0, 6 - digits.count)) + digits
    }

    /// The index in a name like `c000017`; nil for anything else.
    static func index(of name: String) -> Int? {
        guard name.hasPrefix("c"), let index = Int(name.dropFirst()), index >= 0, self.name(of: index) == name else {
            return nil
        }
        return index
    }
}

/// The ids of one customer's rows. They are spread so that their order says nothing about time, as Apple's.
struct CustomerIDs: Sendable {
    let index: Int
    let environment: StoreEnvironment

    private static let roomPerCustomer = 10_000
    /// A prime above the most periods of a life: multiplying by anything below it reaches every number once.
    private static let spread = 4999
    private static let stride = 1237

    var originalTransactionID: String { transactionID(of: 0) }

    func transactionID(of ordinal: Int) -> String {
        String(base + index * Self.roomPerCustomer + ordinal * Self.stride % Self.spread)
    }

    /// What a restore calls the same purchase.
    func restoredTransactionID(of ordinal: Int) -> String {
        String(base + index * Self.roomPerCustomer + Self.spread + ordinal * Self.stride % Self.spread)
    }

    func webOrderLineItemID(of ordinal: Int) -> String {
        String(base + lineItems + index * Self.roomPerCustomer + ordinal)
    }

    var lifetimeTransactionID: String {
        String(base + index * Self.roomPerCustomer + Self.roomPerCustomer - 1)
    }

    private var base: Int {
        switch environment {
        case .production: 570_000_000_000_000
        case .sandbox: 2_000_000_000_000_000
        }
    }

    private var lineItems: Int { 200_000_000_000_000 }
}
