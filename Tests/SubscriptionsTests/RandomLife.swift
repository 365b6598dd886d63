import SeededRandom
import Subscriptions

/// Answers that no life explains, made by a seed: renewals, gaps, refunds, upgrades, device receipts, rows without
/// identifier. `Life` makes those that one does.
enum RandomLife {
    /// A few answers about one subscription, oldest first.
    ///
    /// Ends of periods never move back between them, so that no answer looks like a lagging replica's.
    static func answers(using random: inout Seeded) -> [SubscriptionEvidence] {
        let rows = rows(using: &random)
        var asOf = Double.random(in: 0...40, using: &random)
        return (0..<Int.random(in: 1...4, using: &random)).map { _ in
            asOf += Double.random(in: 0...40, using: &random)
            let now = asOf
            let known = rows.filter { day(now) + .days(1) > $0.purchasedAt }.filter { _ in
                Int.random(in: 0..<8, using: &random) > 0
            }
            var seen = (known.isEmpty ? Array(rows.prefix(1)) : known).map { hidden($0, at: day(now), &random) }
            seen.shuffle(using: &random)
            return answer(now, seen, pending(at: now, using: &random))
        }
    }

    /// Whole answers about one subscription, and a newer one that holds the newest of their periods and states whether
    /// renewal is on. The older ones know less, or other ends.
    static func answersAndNewest(
        using random: inout Seeded
    ) -> (older: [SubscriptionEvidence], newest: SubscriptionEvidence) {
        let rows = rows(using: &random)
        var asOf = Double.random(in: 0...40, using: &random)
        let older = (0..<Int.random(in: 1...3, using: &random)).map { _ in
            asOf += Double.random(in: 0...40, using: &random)
            return answer(
                asOf, known(of: rows, at: asOf).map { earlier($0, &random) }, pending(at: asOf, using: &random))
        }
        asOf += Double.random(in: 0.001...40, using: &random)
        var said = pending(at: asOf, using: &random)
        said.willRenew = said.willRenew ?? Bool.random(using: &random)
        return (older, answer(asOf, known(of: rows, at: asOf).shuffled(using: &random), said))
    }

    private static func known(of rows: [TransactionRow], at now: Double) -> [TransactionRow] {
        rows.filter { day(now) + .days(1) > $0.purchasedAt }
    }

    /// The row as an earlier answer may have shown it: whole, or not yet taken back, or with another end.
    private static func earlier(_ row: TransactionRow, _ random: inout Seeded) -> TransactionRow {
        var row = row
        switch Int.random(in: 0..<8, using: &random) {
        case 0: row.cancelledAt = nil
        case 1: row.isUpgraded = false
        case 2: row.expiresAt = row.expiresAt.map { $0 + .days(Int64.random(in: -5...5, using: &random)) }
        case 3: row.transactionID = TransactionID("r\(row.transactionID.text)")
        default: break
        }
        return row
    }

    /// What all answers of such a life, or of one that makes sense, amount to.
    static func facts(using random: inout Seeded) -> SubscriptionFacts {
        let isSensible = Bool.random(using: &random)
        let answers =
            isSensible ? Life(using: &random).answers(upTo: 6, using: &random) : answers(using: &random)
        return answers.dropFirst().reduce(SubscriptionFacts(answers[0])) { $0.adding($1) }
    }

    private static func rows(using random: inout Seeded) -> [TransactionRow] {
        let products: [ProductID] = ["monthly", "yearly", "weekly"]
        var start = 0.0
        return (0..<Int.random(in: 1...6, using: &random)).map { number in
            let lengths: [Double] = [7, 30, 90]
            let length = lengths.randomElement(using: &random) ?? 30
            let isVoid = Int.random(in: 0..<5, using: &random) == 0
            let made = row(
                "\(number)", start, start + length, product: products.randomElement(using: &random) ?? "monthly",
                cancelled: isVoid ? start + Double.random(in: -1...40, using: &random) : nil,
                upgraded: Int.random(in: 0..<8, using: &random) == 0, trial: number == 0 && Bool.random(using: &random),
                family: Int.random(in: 0..<9, using: &random) == 0)
            let next: [Double] = [length, length, length + 0.01, length + 3, length + 80, length / 2]
            start += next.randomElement(using: &random) ?? length
            return made
        }
    }

    /// The row as one answer may show it: from a device, without identifier, under another delivery, not cancelled yet.
    private static func hidden(_ row: TransactionRow, at now: Instant, _ random: inout Seeded) -> TransactionRow {
        var row = row
        if let cancelledAt = row.cancelledAt, cancelledAt > now || Int.random(in: 0..<4, using: &random) == 0 {
            row.cancelledAt = nil
        }
        switch Int.random(in: 0..<6, using: &random) {
        case 0:
            row.source = .deviceReceipt
            row.asOf = now - .days(Int64.random(in: 0...20, using: &random))
        case 1: row.webOrderLineItemID = nil
        case 2: row.transactionID = TransactionID("r\(row.transactionID.text)")
        case 3: row.appAccountToken = "token\(Int.random(in: 0...1, using: &random))"
        default: break
        }
        return row
    }

    private static func pending(at now: Double, using random: inout Seeded) -> Renewal {
        let graces: [Double?] = [now + 3, now - 3, nil, nil, nil]
        let grace = graces.randomElement(using: &random) ?? nil
        return renewal(
            [true, true, false, nil].randomElement(using: &random) ?? nil,
            to: Bool.random(using: &random) ? nil : "yearly",
            intent: [nil, nil, nil, "1", "2", "3", "9"].randomElement(using: &random) ?? nil,
            retry: [nil, nil, true, false].randomElement(using: &random) ?? nil,
            grace: grace, consent: [nil, nil, "0", "1"].randomElement(using: &random) ?? nil,
            graceByStatus: grace.map { $0 > now } == true
                ? nil : [nil, nil, true, false].randomElement(using: &random) ?? nil)
    }
}
