/// The app's own user ids: `c000017`, and `c000017b` for a second customer on the same Apple account.
enum CustomerName {
    static func first(_ index: Int) -> String {
        let digits = String(index)
        return "c" + String(repeating: "0", count: max(0, 6 - digits.count)) + digits
    }

    static func second(_ index: Int) -> String { first(index) + "b" }

    /// Returns the index in a name; nil for any other text.
    static func index(of name: String) -> Int? {
        let digits = name.hasSuffix("b") ? name.dropFirst().dropLast() : name.dropFirst()
        guard name.hasPrefix("c"), let index = Int(digits), index >= 0, [first(index), second(index)].contains(name)
        else { return nil }
        return index
    }
}

/// The ids of one account's rows. As with Apple's ids, their order says nothing about time.
struct AccountIDs: Sendable {
    let index: Int
    let environment: StoreEnvironment

    private static let roomPerAccount = 4_000_000
    private static let firstAppTransaction = 700_000_000_000_000_000
    private static let roomPerEnvironment = 10_000_000_000_000_000
    private static let purchases = 3_500_000
    /// The most subscriptions of an account: ids of more would collide with those of its purchases.
    static let subscriptionsMax = purchases / SubscriptionIDs.room

    func subscription(_ number: Int) -> SubscriptionIDs {
        SubscriptionIDs(first: base + index * Self.roomPerAccount + number * SubscriptionIDs.room)
    }

    /// Returns the id of a one-time purchase. Restores are counted from 1; each has its own id for the same purchase.
    func purchase(_ ordinal: Int, restore: Int = 0) -> String {
        String(firstPurchase + restore * PurchaseHistory.purchasesMax + ordinal)
    }

    /// Returns the number of the purchase with an id, restored ones included; nil for any other text.
    func purchaseOrdinal(of id: String) -> Int? {
        let places = 0..<(SubscriptionIDs.restoresMax + 1) * PurchaseHistory.purchasesMax
        guard let number = Int(id), places.contains(number - firstPurchase) else { return nil }
        return (number - firstPurchase) % PurchaseHistory.purchasesMax
    }

    private var firstPurchase: Int { base + index * Self.roomPerAccount + Self.purchases }

    /// Returns a version 4 UUID in lower case, always the same for this account.
    func accountToken(seed: UInt64) -> String {
        var numbers = SeededGenerator(seed: seed ^ 0xACC0, stream: UInt64(index))
        let (high, low) = (numbers.next(), numbers.next())
        return String(decoding: HexDigits.uuid(high & ~0xF000 | 0x4000, low & ~(3 << 62) | 2 << 62), as: UTF8.self)
    }

    /// Apple's id of the account in this app.
    var appTransaction: String { String(Self.firstAppTransaction + appTransactionRoom + index) }

    /// Returns the account that has a transaction or app transaction with an id; nil for ids of no account.
    static func owner(of id: String, at environment: StoreEnvironment) -> AccountIDs? {
        guard let number = Int(id) else { return nil }
        let none = AccountIDs(index: 0, environment: environment)
        let appNumber = number - firstAppTransaction - none.appTransactionRoom
        if (0..<roomPerEnvironment).contains(appNumber) {
            return AccountIDs(index: appNumber, environment: environment)
        }
        guard number >= none.base, number < firstAppTransaction else { return nil }
        return AccountIDs(index: (number - none.base) / roomPerAccount, environment: environment)
    }

    private var appTransactionRoom: Int {
        switch environment {
        case .production: 0
        case .sandbox: Self.roomPerEnvironment
        }
    }

    private var base: Int {
        switch environment {
        case .production: 570_000_000_000_000
        case .sandbox: 2_000_000_000_000_000
        }
    }
}

/// The ids of one subscription's periods.
struct SubscriptionIDs: Sendable {
    static let room = 500_000
    /// The most restores: ids of more would collide with another subscription's.
    static let restoresMax = 4
    /// A prime above the most periods of a life: multiplication by any smaller number reaches every number once.
    private static let spread = 99_991
    private static let stride = 1237
    private static let lineItems = 200_000_000_000_000

    let first: Int

    var originalTransactionID: String { transactionID(of: 0, restore: 0) }

    /// Returns the id of a period. Restores are counted from 1; each has its own ids for the same period.
    func transactionID(of ordinal: Int, restore: Int = 0) -> String {
        String(first + restore * Self.spread + ordinal * Self.stride % Self.spread)
    }

    func webOrderLineItemID(of ordinal: Int) -> String { String(webOrderLineItemNumber(of: ordinal)) }

    func webOrderLineItemNumber(of ordinal: Int) -> Int { first + Self.lineItems + ordinal }
}
