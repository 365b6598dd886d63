import SeededRandom

/// What is killed.
enum Victim: String, CaseIterable, Sendable {
    case client, server, worker, database
}

/// A step of a purchase at which something is killed.
enum PurchaseStep: String, CaseIterable, Sendable {
    /// The service places the order.
    case order
    /// The customer pays.
    case buy
    /// The receipt is sent.
    case upload
    /// The app finishes the transaction.
    case finish
    /// The consumer has read a delivery.
    case read
    /// The consumer stores a delivery with its credit.
    case store
    /// The consumer acknowledges what it gave.
    case acknowledge
    /// Apple refunds the purchase, and a worker is to see it.
    case refund
    /// The consumer acknowledges what it took back.
    case takeBack
}

/// What dies at which step of a round, and how.
struct Kill: Sendable, CustomStringConvertible {
    let victim: Victim
    let step: PurchaseStep
    /// How long the call of the step has been under way.
    let afterMilliseconds: Int
    /// Whether a client dies after the call, which it then does not remember, or before.
    let isLate: Bool
    /// Whether the database stops at once, or all its sessions end.
    let stopsDatabase: Bool

    var description: String { "\(victim) killed at \(step) after \(afterMilliseconds) ms" }
}

/// One round, drawn from a seed.
struct RoundPlan: Sendable, CustomStringConvertible {
    /// What a customer buys.
    enum Item: String, CaseIterable, Sendable {
        case coins, lifetime, season, weekly
    }

    /// What ties the payment to its order; the words are the causes of orders.
    enum Tie: String, CaseIterable, Sendable {
        case token, proof, order, product
    }

    /// When Apple refunds.
    enum Refund: String, CaseIterable, Sendable {
        case never, beforeFinish, afterFinish
    }

    let number: Int
    let item: Item
    let quantity: Int
    let tie: Tie
    /// Whether the family organiser has to approve.
    let isDeferred: Bool
    /// How far verifyReceipt lags behind the purchase.
    let lagSeconds: Int
    let refund: Refund
    let isReversed: Bool
    /// Whether the app sends its old receipt again at the end.
    let isSentAgain: Bool
    /// Idempotency-Key of the order.
    let requestKey: String
    let kill: Kill

    init(number: Int, seed: UInt64) {
        var random = Seeded(seed: seed &* 100_000 &+ UInt64(number))
        func draw(oneIn chances: Int) -> Bool { Int.random(in: 0..<chances, using: &random) == 0 }
        self.number = number
        item = Item.allCases.randomElement(using: &random) ?? .coins
        quantity = item == .coins ? Int.random(in: 1...10, using: &random) : 1
        tie = Tie.allCases.randomElement(using: &random) ?? .token
        isDeferred = item == .season && draw(oneIn: 2)
        lagSeconds = draw(oneIn: 6) && tie != .product ? Int.random(in: 2...6, using: &random) : 0
        refund = Refund.allCases.randomElement(using: &random) ?? .never
        isReversed = draw(oneIn: 3)
        isSentAgain = draw(oneIn: 3)
        requestKey = "round \(seed) \(number)"
        // A finished consumable's refund shows in no answer.
        let isSeen = refund == .beforeFinish || (refund == .afterFinish && item != .coins)
        let isRefunded = refund != .never
        let steps = PurchaseStep.allCases.filter { step in
            switch step {
            case .order, .buy, .upload, .finish, .read, .store, .acknowledge: true
            case .refund: isRefunded
            case .takeBack: isSeen
            }
        }
        kill = Kill(
            victim: Victim.allCases[number % Victim.allCases.count],
            step: steps.randomElement(using: &random) ?? .order,
            afterMilliseconds: Int.random(in: 0...40, using: &random), isLate: draw(oneIn: 2),
            stopsDatabase: draw(oneIn: 2))
    }

    var productID: String { "com.example.tracker.\(item)" }

    var description: String {
        "round \(number): \(quantity) \(item)\(isDeferred ? " deferred" : "") by \(tie), lag \(lagSeconds) s, "
            + "refund \(refund)\(isReversed ? " reversed" : ""), \(isSentAgain ? "sent again, " : "")\(kill)"
    }
}
