import SeededRandom
import Testing

@testable import Subscriptions

@Suite("A line item is one charge: it belongs to the subscription that the newest statement names")
struct LineItemMoveTests {
    private func bought(
        _ asOf: Double, of subscription: OriginalTransactionID, _ change: (inout TransactionRow) -> Void = { _ in }
    ) -> TransactionRow {
        var bought = row("9", 10, 40, asOf: asOf, transaction: "t\(subscription)", of: subscription)
        bought.ownership = .purchased
        change(&bought)
        return bought
    }

    @Test("The emptied subscription ends, names its successor, and nothing is announced twice")
    func moves() throws {
        let old = row("1", -100, -70, of: "1000")
        let first = evidence(11, [bought(11, of: "2000"), old])
        let second = evidence(20, [bought(20, of: "1000"), old])
        let (states, events) = foldWhole([first, second])
        let (emptied, successor) = (try #require(states["2000"]), try #require(states["1000"]))
        #expect(events == ["1000 subscription.started", "2000 subscription.started", "2000 subscription.expired"])
        #expect(drawing(emptied.timeline) == "10 expired/other monthly")
        #expect(drawing(successor.timeline).hasSuffix("10 active monthly | 40 expired/unknown monthly"))
        let before = try #require(foldWhole([first]).states["2000"])
        let move = try #require(second.moves(among: [before.facts, successor.facts]).first)
        let result = reconcile(before, with: move.evidence(), policy: strictPolicy)
        #expect(result.events.map(\.detail["moved_to"]) == [.text("1000")])
        // The same statement again changes nothing, and the move can be made again from what is stored.
        #expect(foldWhole([first, second, second]).events == events)
        #expect(reconcile(result.state, with: move.evidence(), policy: strictPolicy).changed == false)
        let restated = try #require(emptied.facts.periods.first?.move(from: "2000"))
        #expect(reconcile(before, with: restated, policy: strictPolicy).state.facts.sameMeaning(as: emptied.facts))
        // Where the successor is another customer's, who paid keeps access to the end, and no longer.
        let kept = reconcile(before, with: move.evidence(keepsAccess: true), policy: standardPolicy)
        #expect(kept.events.isEmpty)
        #expect(
            drawing(kept.state.timeline) == "10 awaiting_renewal/replacement monthly | 40 expired/other monthly")
        #expect(kept.state.outageAllowance == OutageAllowance(expected: false, accessEndsAt: day(40)))
        let later = reconcile(kept.state, with: .silence(of: "2000", until: day(41)), policy: standardPolicy)
        #expect(later.events.map(\.kind) == [.subscriptionExpired])
        #expect(later.events.map(\.detail["moved_to"]) == [.text("1000")])
    }

    @Test(
        "Nothing moves but a purchase of the same product and dates that Apple states later",
        arguments: [
            "product", "start", "end", "family", "unsaid", "device", "older", "other beside",
        ])
    func stays(_ difference: String) {
        let asOf: Double = difference == "older" ? 10.9 : 20
        var rows = [
            bought(asOf, of: "1000") { row in
                switch difference {
                case "product": row.productID = "yearly"
                case "start": row.purchasedAt = day(10.5)
                case "end", "other beside": row.expiresAt = day(41)
                case "family": row.ownership = .familyShared
                case "unsaid": row.ownership = nil
                case "device": row.source = .deviceReceipt
                default: break
                }
            }
        ]
        // Two ids that disagree about the period.
        if difference == "other beside" { rows.append(bought(asOf, of: "2000")) }
        let (states, _) = foldWhole([evidence(11, [bought(11, of: "2000")]), evidence(asOf, rows)])
        #expect(states["2000"].map { drawing($0.timeline) } == "10 active monthly | 40 expired/unknown monthly")
    }

    /// What is known of the successor when a period comes to it.
    enum Successor: CaseIterable {
        case known, unknown, older
    }

    /// An answer that names an earlier subscription with the line item, or without.
    private func answer(
        _ asOf: Double, of subscription: OriginalTransactionID, cancelled: Double? = nil, withOld: Bool
    ) -> Evidence {
        let item = bought(asOf, of: subscription) { row in
            (row.cancelledAt, row.cancellationReason) = (cancelled.map(day), cancelled.map { _ in "1" })
        }
        return evidence(asOf, [item] + (withOld ? [row("1", -100, -70, asOf: asOf, of: "1000")] : []))
    }

    @Test(
        "A refund goes with its period, and a second answer takes it back, ten minutes later",
        arguments: Successor.allCases)
    func refunded(_ successor: Successor) {
        let (first, later) = (successor == .known, successor != .unknown)
        let answers = [
            answer(11, of: "2000", withOld: first), answer(12, of: "2000", cancelled: 11.5, withOld: first),
            answer(20, of: "1000", withOld: later),
        ]
        func events(_ answers: [Evidence], _ kind: String) -> [String] {
            foldWhole(answers).events.filter { $0.hasSuffix(kind) }
        }
        func isActive(_ answers: [Evidence]) -> Bool {
            foldWhole(answers).states["1000"].flatMap { $0.timeline.span(at: $0.asOf)?.state } == .active
        }
        let states = foldWhole(answers).states
        #expect(states["1000"]?.timeline.span(at: day(20))?.state == .revoked)
        #expect(states["1000"]?.retractions.map(\.what) == [.revocation])
        #expect(states.values.flatMap(\.facts.periods).count { $0.isRefunded } == 1, "one refund of one charge")
        #expect(events(answers, "refund.granted") == ["2000 refund.granted"])
        #expect(events(answers, "refund.reversed") == [])
        let minutes = { (count: Double) in self.answer(20 + count / 1_440, of: "1000", withOld: later) }
        #expect(!isActive(answers + [minutes(0)]))
        // The refund was stated eight days ago; a second answer is enough.
        #expect(isActive(answers + [minutes(1)]))
        #expect(events(answers + [minutes(1), minutes(20)], "refund.reversed") == ["1000 refund.reversed"])
        // It stays where the second answer states it again.
        let again = answer(20.01, of: "1000", cancelled: 11.5, withOld: later)
        #expect(!isActive(answers + [again]))
        #expect(events(answers + [again], "refund.granted") == ["2000 refund.granted"])
    }

    @Test("A refund of seats goes with its period likewise", arguments: Successor.allCases)
    func refundedSeats(_ successor: Successor) {
        let (first, later) = (successor == .known, successor != .unknown)
        func group(_ asOf: Double, of id: OriginalTransactionID, revoked: Int, withOld: Bool) -> Evidence {
            var said = answer(asOf, of: id, withOld: withOld)
            said.transactions[0].sale = Sale(seats: Sale.Seats(count: 8, revoked: revoked))
            return said
        }
        func left(_ answers: [Evidence]) -> [Int] {
            foldWhole(answers).states["1000"]?.facts.periods.compactMap(\.details.sale?.value.seats?.revoked) ?? []
        }
        let answers = [
            group(11, of: "2000", revoked: 0, withOld: first), group(12, of: "2000", revoked: 3, withOld: first),
            group(20, of: "1000", revoked: 0, withOld: later),
        ]
        #expect(left(answers) == [3] && foldWhole(answers).states["1000"]?.retractions.map(\.what) == [.seats])
        #expect(left(answers + [group(20.01, of: "1000", revoked: 0, withOld: later)]) == [0])
        #expect(left(answers + [group(20.01, of: "1000", revoked: 4, withOld: later)]) == [4])
    }

    @Test(
        "A refund that comes with the move is reported once, by the successor", arguments: Successor.allCases,
        [false, true])
    func refundedWithMove(_ successor: Successor, _ wasRefunded: Bool) {
        let (first, later) = (successor == .known, successor != .unknown)
        var answers = [answer(11, of: "2000", withOld: first)]
        if wasRefunded { answers.append(answer(12, of: "2000", cancelled: 11.5, withOld: first)) }
        answers.append(answer(20, of: "1000", cancelled: 11.5, withOld: later))
        let (states, events) = foldWhole(answers)
        #expect(events.filter { $0.hasSuffix("refund.granted") } == ["\(wasRefunded ? 2000 : 1000) refund.granted"])
        #expect(states["1000"]?.timeline.span(at: day(20))?.state == .revoked)
        #expect(foldWhole(answers + [answers[answers.count - 1]]).events == events)
        let moves = answer(20.2, of: "1000", cancelled: 11.5, withOld: later)
            .moves(among: states.sorted { $0.key < $1.key }.map(\.value.facts))
        #expect(moves.count == 1 && moves.allSatisfy { $0.isRefunded && !$0.isNew })
        // It comes back as a whole, by two answers.
        let back = [20.5, 21].map { answer($0, of: "2000", cancelled: 11.5, withOld: later) }
        #expect(foldWhole(answers + [back[0]]).states["2000"]?.facts.periods.first?.movedTo == "1000")
        let (returned, all) = foldWhole(answers + back)
        #expect(returned["2000"]?.timeline.span(at: day(21))?.state == .revoked)
        #expect(all.count { $0.hasSuffix("refund.granted") } == 1)
    }

    @Test("A period that comes back without the refund that it had elsewhere was refunded no more")
    func backWithoutRefund() {
        let answers = [
            answer(11, of: "2000", withOld: false), answer(12, of: "1000", withOld: false),
            answer(13, of: "1000", cancelled: 12.5, withOld: false), answer(14, of: "2000", withOld: false),
        ]
        func refunds(_ answers: [Evidence]) -> [String] { foldWhole(answers).events.filter { $0.contains("refund") } }
        #expect(refunds(answers) == ["1000 refund.granted"])
        let back = answers + [answer(14.1, of: "2000", withOld: false)]
        #expect(refunds(back) == ["1000 refund.granted", "2000 refund.reversed"])
        #expect(refunds(back + [answer(15, of: "2000", withOld: false)]) == refunds(back))
        #expect(foldWhole(back).states["2000"]?.timeline.span(at: day(14.1))?.state == .active)
    }

    @Test("A replaced period moves with its mark, and comes back by a second answer", arguments: [true, false])
    func replaced(_ isMarked: Bool) {
        func both(_ asOf: Double, of id: OriginalTransactionID, marked: Bool = true) -> Evidence {
            let month = bought(asOf, of: id) { row in
                if marked { (row.isUpgraded, row.cancelledAt) = (true, day(20)) }
            }
            let next = bought(asOf, of: id) { row in
                (row.transactionID, row.webOrderLineItemID) = (TransactionID("n\(id)"), "next")
                (row.productID, row.purchasedAt, row.expiresAt) = ("plus", day(20), day(50))
            }
            return evidence(asOf, [month, next])
        }
        func held(_ answers: [Evidence], by id: OriginalTransactionID) -> [Bool?] {
            (foldWhole(answers).states[id]?.facts.periods ?? []).map { $0.movedTo == nil ? $0.isUpgraded : nil }
        }
        let answers = [both(21, of: "2000"), both(22, of: "1000", marked: isMarked)]
        #expect(held(answers, by: "2000") == [nil, nil])
        #expect(held(answers, by: "1000") == [true, false])
        #expect(foldWhole(answers).events == ["2000 subscription.started", "2000 subscription.expired"])
        let once = answers + [both(23, of: "2000")]
        #expect(held(once, by: "2000") == [nil, nil])
        #expect(held(once, by: "1000") == [true, false])
        let back = once + [both(23.1, of: "2000")]
        #expect(held(back, by: "2000") == [true, false])
        #expect(held(back, by: "1000") == [nil, nil])
        #expect(foldWhole(back).states["2000"]?.timeline.span(at: day(23.1))?.state == .active)
    }

    @Test("All that had the period name the newest successor, and its refund there")
    func chain() {
        let answers = [11.0, 12, 13].enumerated().map { answer($1, of: ["3000", "2000", "1000"][$0], withOld: false) }
        let states = foldWhole(answers).states
        #expect(["3000", "2000"].map { states[$0]?.facts.periods.first?.movedTo } == ["1000", "1000"])
        let known = states.sorted { $0.key < $1.key }.map(\.value.facts)
        let refund = answer(14, of: "1000", cancelled: 13.5, withOld: false)
        #expect(refund.moves(among: known).map(\.from) == ["2000", "3000"])
        #expect(refund.moves(among: known).allSatisfy { !$0.isNew })
    }

    @Test(
        "After any statements in order, exactly the subscription of the newest one holds the charge", arguments: 1...40)
    func property(_ seed: Int) {
        var random = Seeded(seed: UInt64(seed))
        var holder = 0
        var known: Set<OriginalTransactionID> = []
        var answers: [Evidence] = []
        for step in 0..<Int.random(in: 1...8, using: &random) {
            if Bool.random(using: &random) { holder += 1 }
            let id = OriginalTransactionID("\(1_000 * (1 + holder * 7 % 10))")
            known.insert(id)
            let asOf = 11 + Double(step)
            var rows = [bought(asOf, of: id)]
            // A device's receipt still shows an earlier id.
            if let earlier = known.sorted().randomElement(using: &random), earlier != id, Bool.random(using: &random) {
                rows.append(bought(10.5, of: earlier) { $0.source = .deviceReceipt })
            }
            answers.append(evidence(asOf, rows))
        }
        let newest = OriginalTransactionID("\(1_000 * (1 + holder * 7 % 10))")
        let (states, events) = foldWhole(answers)
        let active = states.filter { $0.value.timeline.span(at: $0.value.asOf)?.state == .active }.map(\.key)
        #expect(active == [newest], "seed \(seed)")
        #expect(states.count { $0.value.facts.periods.contains { $0.movedTo == nil } } == 1, "seed \(seed)")
        #expect(events.count { $0.hasSuffix("subscription.started") } == 1, "seed \(seed)")
    }

    @Test("It comes back by a second answer, ten minutes after the newest statement at the earliest", arguments: 1...60)
    func backAndForth(_ seed: Int) {
        var random = Seeded(seed: UInt64(seed))
        var minutes = 0
        var (holder, stated, waitsSince): (Int, Int, Int?) = (0, 0, nil)
        var held: Set<Int> = [0]
        var answers = [evidence(11, [bought(11, of: "2000")])]
        for _ in 0..<Int.random(in: 1...14, using: &random) {
            minutes += Int.random(in: 1...8, using: &random)
            let named = Int.random(in: 0...1, using: &random)
            let asOf = 11 + Double(minutes) / 1_440
            answers.append(evidence(asOf, [bought(asOf, of: named == 0 ? "2000" : "1000")]))
            // The model: a new id has it at once, a former one after two answers.
            if named == holder {
                (stated, waitsSince) = (minutes, nil)
            } else if !held.contains(named) || waitsSince != nil && minutes >= stated + 10 {
                (holder, stated, waitsSince) = (named, minutes, nil)
                held.insert(named)
            } else {
                waitsSince = waitsSince ?? minutes
            }
            let states = foldWhole(answers).states
            let active = states.filter { $0.value.timeline.span(at: $0.value.asOf)?.state == .active }.map(\.key)
            #expect(active == [holder == 0 ? "2000" : "1000"], "seed \(seed), minute \(minutes)")
        }
    }

    private func held(_ states: [OriginalTransactionID: SubscriptionState]) -> [String] {
        states.sorted { $0.key < $1.key }.flatMap { id, state in
            state.facts.periods.filter { $0.movedTo == nil }.compactMap(\.webOrderLineItemID).map { "\(id) \($0)" }
        }
    }

    @Test(
        "In any order of the answers the newest one has the charge, which is announced once",
        arguments: [[0, 1], [1, 0], [0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]],
        Successor.allCases)
    func anyOrder(_ order: [Int], _ successor: Successor) {
        let newest = order.max() ?? 0
        let ids: [OriginalTransactionID] = ["1000", "3000", "2000"]
        func old(_ asOf: Double, of id: OriginalTransactionID) -> TransactionRow {
            var old = row("old\(id)", -100, -70, asOf: asOf, of: id)
            old.ownership = .purchased
            return old
        }
        let first = successor == .known ? [evidence(10.5, ids.map { old(10.5, of: $0) })] : []
        let answers = order.map { index in
            let asOf = 11 + Double(index)
            let more = successor == .unknown ? [] : [old(asOf, of: ids[index])]
            return evidence(asOf, [bought(asOf, of: ids[index])] + more)
        }
        let (states, events) = foldWhole(first + answers)
        #expect(held(states).filter { $0.hasSuffix(" w9") } == ["\(ids[newest]) w9"])
        let active = states.filter { $0.value.timeline.span(at: $0.value.asOf)?.entitled == true }.map(\.key)
        #expect(active == [ids[newest]])
        let later = foldWhole(first + answers + [evidence(20, [bought(20, of: ids[newest])])])
        #expect(held(later.states) == held(states) && later.events == events, "asking again changes nothing")
        // What was never announced does not end.
        let starts = events.count { $0.hasSuffix(".started") || $0.hasSuffix(".reactivated") }
        let known = successor == .unknown ? 0 : successor == .known ? 3 : Set(order).count
        #expect(starts - known <= 1, "\(events)")
        let emptied = order.indices.filter { place in place > 0 && order[..<place].allSatisfy { $0 < order[place] } }
        let ends = events.filter { $0.hasSuffix(".expired") }
        #expect(ends.count == emptied.count, "\(events)")
    }

    @Test("A device's receipt that is older than the answer's own statement adds no second charge")
    func deviceBeside() {
        let device = bought(10.5, of: "2000") { $0.source = .deviceReceipt }
        let (states, events) = foldWhole([evidence(11, [bought(11, of: "1000"), device])])
        #expect(held(states) == ["1000 w9"])
        #expect(events == ["1000 subscription.started"])
    }

    /// What was known under the first id, what its later period is, and the events of the second id.
    private static let together: [(String, RowChange, RowChange, Renewal, String)] = [
        ("renewed", { _ in }, { _ in }, renewal(), "renewed"),
        ("another product", { _ in }, { $0.productID = "yearly" }, renewal(), "product.changed renewed"),
        ("trial", { $0.isTrial = true }, { $0.isTrial = false }, renewal(), "trial.converted"),
        (
            "recovered in grace", { _ in }, { _ in }, renewal(intent: "2", retry: true, grace: 46), "recovered"
        ),
        (
            "recovered late", { _ in }, { ($0.purchasedAt, $0.expiresAt) = (day(44), day(74)) },
            renewal(intent: "2", retry: true), "recovered"
        ),
        (
            "came back", { _ in }, { ($0.purchasedAt, $0.expiresAt) = (day(44), day(74)) },
            renewal(false, intent: "1"), "reactivated"
        ),
    ]

    typealias RowChange = @Sendable (inout TransactionRow) -> Void

    @Test(
        "A later period in the answer that moves one has its event, as if it had always been there",
        arguments: together.indices, Successor.allCases)
    func laterPeriod(_ place: Int, _ successor: Successor) {
        let (name, first, second, said, expected) = Self.together[place]
        let old = { (asOf: Double) in row("old", -200, -170, asOf: asOf, of: "1000") }
        func month(_ asOf: Double, of id: OriginalTransactionID) -> TransactionRow { bought(asOf, of: id, first) }
        var answers = [evidence(41, [month(41, of: "2000")], ["2000": said])]
        if successor == .known { answers.insert(evidence(1, [old(1)]), at: 0) }
        let next = bought(45, of: "1000") { row in
            (row.webOrderLineItemID, row.transactionID) = ("w10", "t10")
            (row.purchasedAt, row.expiresAt) = (day(40), day(70))
            second(&row)
        }
        let rows = [next, month(45, of: "1000")] + (successor == .unknown ? [] : [old(45)])
        answers.append(evidence(45, rows, ["1000": renewal(product: next.productID)]))
        let (states, events) = foldWhole(answers)
        let start = successor == .unknown ? [] : ["subscription.started"]
        let found = events.filter { $0.hasPrefix("1000 ") && !$0.contains("auto_renew") }.map {
            String($0.dropFirst(5))
        }
        let wanted = expected.split(separator: " ").map { $0.contains(".") ? String($0) : "subscription.\($0)" }
        #expect(found == start + wanted, "\(name)")
        #expect(states["1000"]?.timeline.span(at: day(45))?.state == .active)
        #expect(foldWhole(answers + [answers[answers.count - 1]]).events == events)
    }

    /// Where the product of an upgrade is that comes with a move.
    enum Upgrade: String, CaseIterable {
        case atTheSuccessor, whereItWas, atAThird
    }

    @Test(
        "An upgrade in the answer that moves its period is one change of the product, wherever it is shown",
        arguments: Upgrade.allCases, Successor.allCases)
    func upgradedWithMove(_ upgrade: Upgrade, _ successor: Successor) {
        let old = { (asOf: Double) in row("old", -200, -170, asOf: asOf, of: "1000") }
        let holder: OriginalTransactionID =
            switch upgrade {
            case .atTheSuccessor: "1000"
            case .whereItWas: "2000"
            case .atAThird: "3000"
            }
        let month = bought(21, of: "1000") { ($0.isUpgraded, $0.cancelledAt) = (true, day(20)) }
        let plus = bought(21, of: holder) { row in
            (row.webOrderLineItemID, row.transactionID, row.productID) = ("w10", "t10", "plus")
            (row.purchasedAt, row.expiresAt) = (day(20), day(50))
        }
        var answers = [
            evidence(19, [bought(19, of: "2000")]),
            evidence(21, [plus, month] + (successor == .unknown ? [] : [old(21)])),
        ]
        if successor == .known { answers.insert(evidence(1, [old(1)]), at: 0) }
        let (states, events) = foldWhole(answers)
        let started = events.filter { $0 == "1000 subscription.started" }
        #expect(started.count == (successor == .unknown ? 0 : 1))
        let news = events.filter { !$0.hasPrefix("1000 subscription.started") }
        let wanted: [String] =
            switch upgrade {
            case .atTheSuccessor: ["1000 product.changed", "2000 subscription.expired"]
            case .whereItWas: ["2000 product.changed"]
            // In another subscription of the group it is a start, and the end of this one, as without a move.
            case .atAThird: ["1000 subscription.expired", "3000 subscription.started", "2000 subscription.expired"]
            }
        #expect(news == ["2000 subscription.started"] + wanted)
        let active = states.filter { $0.value.timeline.span(at: day(21))?.entitled == true }
        #expect(active.map(\.key) == [holder])
        #expect(active.values.allSatisfy { $0.timeline.span(at: day(21))?.productID == "plus" })
        #expect(foldWhole(answers + [answers[answers.count - 1]]).events == events)
    }

    @Test("A replaced period that moves alone knows what took its place where it was", arguments: [false, true])
    func replacedAlone(_ isOlderLast: Bool) {
        func plus(_ asOf: Double, cancelled: Double? = nil) -> TransactionRow {
            bought(asOf, of: "2000") { row in
                (row.webOrderLineItemID, row.transactionID, row.productID) = ("w10", "t10", "plus")
                (row.purchasedAt, row.expiresAt, row.cancelledAt) = (day(20), day(50), cancelled.map(day))
            }
        }
        func month(_ asOf: Double, of id: OriginalTransactionID) -> TransactionRow {
            bought(asOf, of: id) { ($0.isUpgraded, $0.cancelledAt) = (true, day(20)) }
        }
        let answers = [
            evidence(21, [plus(21), month(21, of: "2000")]), evidence(22, [month(22, of: "1000")]),
        ]
        let (states, events) = foldWhole(isOlderLast ? answers.reversed() : answers)
        #expect(held(states) == ["1000 w9", "2000 w10"])
        #expect(states["1000"]?.facts.periods.first?.details.replacedBy?.value == "2000")
        let span = states["1000"]?.timeline.span(at: day(22))
        #expect(span?.state == .expired && span?.reason == .other)
        #expect(states["2000"]?.timeline.span(at: day(22))?.state == .active)
        if !isOlderLast { #expect(events == ["2000 subscription.started"]) }
        let refunded = foldWhole(
            answers + [evidence(23, [plus(23, cancelled: 22.5)]), evidence(24, [month(24, of: "1000")])])
        #expect(refunded.states.values.allSatisfy { $0.timeline.span(at: day(24))?.entitled == false })
        // What moves along replaces it there.
        let along = bought(22, of: "1000") { row in
            (row.webOrderLineItemID, row.transactionID, row.productID) = ("w10", "t10", "plus")
            (row.purchasedAt, row.expiresAt) = (day(20), day(50))
        }
        let both = foldWhole([answers[0], evidence(22, [along, month(22, of: "1000")])]).states
        #expect(held(both) == ["1000 w9", "1000 w10"])
        #expect(both["1000"]?.facts.periods.first?.details.replacedBy == nil)
    }
}
