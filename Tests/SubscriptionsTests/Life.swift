import SeededRandom

@testable import Subscriptions

/// A customer's life with one subscription as Apple knows it, made by a seed: a second opinion on what is true when.
///
/// Days are those of `day(_:)`. It knows nothing of facts, tables and timelines.
struct Life {
    /// What is true from a day on: `active monthly`, `revoked/refund yearly`.
    struct Truth {
        let from: Double
        let words: String
        let entitled: Bool
    }

    let id: OriginalTransactionID
    let isFamily: Bool
    /// For each row every form it takes, with the day from which on Apple shows it.
    private(set) var rows: [[(from: Double, row: TransactionRow)]] = []
    /// Everything Apple says of the renewal, with the day from which on.
    private(set) var pending: [(from: Double, renewal: Renewal)] = []
    private(set) var truths: [Truth] = []
    /// The kinds of the event that each period must have, in the order in which Apple shows the periods.
    private(set) var reported: [(from: Double, kinds: String)] = []

    var head: TransactionRow { rows[rows.count - 1][rows[rows.count - 1].count - 1].row }
    var now: Double = 0
    var renewal: Renewal { pending[pending.count - 1].renewal }

    init(_ id: OriginalTransactionID = subscriptionID, turns: Int = 6, using random: inout Seeded) {
        self.id = id
        isFamily = Int.random(in: 0..<8, using: &random) == 0
        let product = anotherProduct(than: nil, &random)
        pending = [(0, Subscriptions.Renewal(productID: product, renewsToProductID: product, willRenew: true))]
        let isTrial = Int.random(in: 0..<3, using: &random) == 0
        book(
            product, at: 0, kinds: isTrial && !isFamily ? "trial.started" : "subscription.started", isTrial: isTrial,
            using: &random)
        say("active", entitled: true)
        for _ in 0..<turns { turn(using: &random) }
    }

    /// The days on which Apple's answer changes, or what is true does.
    var changes: [Double] {
        Set(rows.joined().map(\.from) + pending.map(\.from) + truths.map(\.from)).sorted()
    }

    /// What is true on a day.
    func truth(at instant: Double) -> Truth? { truths.last { $0.from <= instant } }

    /// The rows as Apple's server shows them on a day.
    func rows(at instant: Double) -> [TransactionRow] {
        rows.compactMap { forms in forms.last { $0.from <= instant }?.row }
    }

    /// What Apple says of the renewal on a day.
    func renewal(at instant: Double) -> Renewal? { pending.last { $0.from <= instant }?.renewal }

    mutating func say(_ words: String, entitled: Bool, at instant: Double? = nil) {
        let subject = rows[rows.count - 1].isEmpty ? "" : " \(head.productID)"
        truths.append(Truth(from: instant ?? now, words: words + subject, entitled: entitled))
    }

    mutating func change(_ instant: Double, _ edit: (inout Renewal) -> Void) {
        var next = renewal
        edit(&next)
        now = instant
        pending.append((instant, next))
    }

    /// Changes the form of a row, the last one unless given.
    mutating func edit(_ index: Int? = nil, at instant: Double, _ edit: (inout TransactionRow) -> Void) {
        let index = index ?? rows.count - 1
        guard var row = rows[index].last?.row else { return }
        edit(&row)
        rows[index].append((instant, row))
    }

    /// Books a period that starts at a day and is shown from `shown` on.
    mutating func book(
        _ product: ProductID, at start: Double, shown: Double? = nil, kinds: String, isTrial: Bool = false,
        using random: inout Seeded
    ) {
        let lengths: [Double] = isTrial ? [3, 7] : [7, 30, 90]
        let length = lengths.randomElement(using: &random) ?? 30
        var made = row(
            "\(id).\(rows.count)", start, start + length, product: product, trial: isTrial, family: isFamily, of: id)
        switch Int.random(in: 0..<6, using: &random) {
        case 0: made.promotionalOfferID = "offer"
        case 1: made.offerCodeRefName = "code"
        case 2: made.isIntro = !isTrial
        default: break
        }
        rows.append([(shown ?? start, made)])
        reported.append((shown ?? start, kinds))
        change(shown ?? start) {
            $0 = Renewal(productID: product, renewsToProductID: product, willRenew: true)
        }
    }

    func anotherProduct(than product: ProductID?, _ random: inout Seeded) -> ProductID {
        let products: [ProductID] = ["monthly", "plus", "yearly"].filter { $0 != product }
        return products.randomElement(using: &random) ?? "monthly"
    }
}
