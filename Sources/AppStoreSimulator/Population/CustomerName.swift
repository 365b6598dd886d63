import Foundation

/// The app's own user ids: `c000017`, and `c000017b` for a second customer on the same Apple account.
enum CustomerName {
    /// Returns the name of the first customer of an account.
    static func first(_ index: Int) -> String {
        let digits = String(index)
        return "c" + String(repeating: "0", count: max(0, 6 - digits.count)) + digits
    }

    /// Returns the name of the second customer of an account.
    static func second(_ index: Int) -> String { first(index) + "b" }

    /// Returns the index in a name; nil for any other text.
    static func index(of name: String) -> Int? {
        let digits = name.hasSuffix("b") ? name.dropFirst().dropLast() : name.dropFirst()
        guard name.hasPrefix("c"), let index = Int(digits), index >= 0, [first(index), second(index)].contains(name)
        else { return nil }
        return index
    }
}

/// A customer of the app on an Apple account: an account has a first one, and may have a second one.
enum Seat: Sendable {
    case first, second

    /// Returns the seat in a name of ``CustomerName``.
    init(of name: String) { self = name.hasSuffix("b") ? .second : .first }

    /// Returns the name of this customer of an account.
    func name(of index: Int) -> String { self == .first ? CustomerName.first(index) : CustomerName.second(index) }
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

    /// Returns the ids of a subscription of the account.
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
        guard let number = Int(id), number >= 0, places.contains(number - firstPurchase) else { return nil }
        return (number - firstPurchase) % PurchaseHistory.purchasesMax
    }

    private var firstPurchase: Int { base + index * Self.roomPerAccount + Self.purchases }

    /// Returns a version 4 UUID in lower case, always the same for this account.
    func accountToken(seed: UInt64) -> String {
        var numbers = SeededGenerator(seed: seed ^ 0xACC0, stream: UInt64(index))
        let (high, low) = (numbers.next(), numbers.next())
        return UUID.text(high & ~0xF000 | 0x4000, low & ~(3 << 62) | 2 << 62)
    }

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

    private var appTransactionRoom: Int { environment == .production ? 0 : Self.roomPerEnvironment }

    private var base: Int { environment == .production ? 570_000_000_000_000 : 2_000_000_000_000_000 }
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

/// The external identity of a customer of the simulator.
package struct SimulatedCustomer: Codable, Sendable {
    /// The bundle id of the app.
    package var app: String
    /// The name, like `c000017`; the app's own user id.
    package var customer: String
    package var environment: StoreEnvironment
    /// The device's receipt in Base64.
    package var receipt: String
    /// Apple's id of the first subscription, or of the first purchase of a customer without subscriptions.
    package var originalTransactionID: String
    /// The token the app passes to Apple with purchases, if it passes one.
    package var appAccountToken: String?

    enum CodingKeys: String, CodingKey {
        case app, customer, environment, receipt
        case originalTransactionID = "original_transaction_id"
        case appAccountToken = "app_account_token"
    }
}

extension SimulatedCustomer {
    init(_ account: Account, in world: World) {
        app = world.bundleID
        customer = account.name
        environment = account.environment
        receipt = world.receipt(of: account)
        originalTransactionID = account.lives.first?.ids.originalTransactionID ?? account.ids.purchase(0)
        appAccountToken = world.accountToken(of: account)
    }
}

/// An account that was read before: its state so far, the manual actions on it, and the rendered responses.
struct KnownAccount: Sendable {
    struct AnswerKey: Equatable, Sendable {
        let identity: ReceiptIdentity
        let excludesOldTransactions: Bool
    }

    private(set) var account: Account
    private(set) var manualActions: [(at: StoreTime, action: CustomerAction)] = []
    /// The latest instant at which it was read; the account itself advances only when something happens.
    private(set) var now: StoreTime
    private var nextChange: StoreTime?
    private var answers: [(key: AnswerKey, answer: RenderedAnswer)] = []
    /// The bytes of responses that a change invalidated; the shard counts the bytes it keeps.
    private var forgottenBytes = 0

    init(_ account: Account) {
        self.account = account
        self.now = account.now
        self.nextChange = account.now
    }

    /// Advances to an instant. An earlier instant changes nothing.
    mutating func look(at moment: StoreTime) {
        now = max(now, moment)
        guard let nextChange, nextChange <= now else { return }
        live()
    }

    /// Returns the account, advanced to now.
    mutating func settled() -> Account {
        account.advance(to: now)
        return account
    }

    /// Applies an action now, and remembers it.
    mutating func apply(_ action: CustomerAction) throws(ActionRefused) -> ActionOutcome {
        account.advance(to: now)
        let outcome = try account.apply(action)
        manualActions.append((at: now, action: action))
        live()
        return outcome
    }

    /// Returns the rendered response at an instant, if it is kept.
    mutating func answer(for key: AnswerKey, at moment: StoreTime) -> (answer: RenderedAnswer, now: StoreTime)? {
        look(at: moment)
        return answers.first { $0.key == key }.map { ($0.answer, now) }
    }

    /// Keeps a rendered response until something changes.
    mutating func keep(_ answer: RenderedAnswer, for key: AnswerKey) { answers.append((key, answer)) }

    /// Drops the rendered responses.
    mutating func forgetAnswers() {
        forgottenBytes += answers.reduce(0) { $0 + $1.answer.size }
        answers = []
    }

    /// Returns the bytes of dropped responses, each once.
    mutating func takeForgottenBytes() -> Int {
        defer { forgottenBytes = 0 }
        return forgottenBytes
    }

    /// Advances the account, whose responses change.
    private mutating func live() {
        account.advance(to: now)
        nextChange = account.nextChange
        forgetAnswers()
    }
}

/// A random number in 0..<1, compared with one share after the other.
struct ShareDraw {
    var rest: Double

    /// Returns whether the number falls on the next share.
    mutating func falls(on share: Double) -> Bool {
        guard rest >= share else { return true }
        rest -= share
        return false
    }
}

/// SplitMix64: the same seed and stream always give the same numbers, on every machine.
struct SeededGenerator: RandomNumberGenerator, Sendable {
    private var state: UInt64

    init(seed: UInt64, stream: UInt64) {
        state = SeededGenerator.mixed(seed &+ 0x9E37_79B9_7F4A_7C15 &* (stream &+ 1))
    }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        return SeededGenerator.mixed(state)
    }

    /// Returns a number in 0..<1.
    mutating func unit() -> Double { Double(next() >> 11) / Double(1 << 53) }

    mutating func between(_ low: Double, _ high: Double) -> Double { low + (high - low) * unit() }

    mutating func chance(_ share: Double) -> Bool { unit() < share }

    mutating func below(_ bound: Int) -> Int { bound <= 0 ? 0 : Int(next() % UInt64(bound)) }

    /// Returns a number whose bits all depend on all bits of the value.
    static func mixed(_ value: UInt64) -> UInt64 {
        var mixed = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}

extension UUID {
    /// Returns the UUID of two numbers as text in lower case.
    static func text(_ high: UInt64, _ low: UInt64) -> String {
        withUnsafeBytes(of: (high.bigEndian, low.bigEndian)) { UUID(uuid: $0.loadUnaligned(as: uuid_t.self)) }
            .uuidString.lowercased()
    }
}
