import SeededRandom
@testable import Subscriptions
import Testing

@Suite("Renewal fields are said, denied or unsaid, each for its period")
struct RenewalFactsTests {
    private let month = row("1", 0, 30)
    private let inGrace = renewal(intent: "2", retry: true, grace: 46)

    private func line(_ answers: SubscriptionEvidence..., policy: Policy = strictPolicy) -> String? {
        settle(answers, policy: policy).state.map { drawing($0.timeline) }
    }

    @Test("A field that Apple writes in both senses is unsaid where it is missing, the others are denied")
    func eachFieldByItself() {
        let said = Renewal(
            productID: "monthly", renewsToProductID: "weekly", willRenew: false, expirationIntent: "2",
            inBillingRetry: true, graceExpiresAt: day(46), priceConsentStatus: "0", priceIncreaseStatus: "0",
            promotionalOfferID: "offer", offerCodeRefName: "code")
        let facts = SubscriptionFacts(answer(31, [month], said)).adding(
            answer(32, [month], Renewal(productID: "plus")))
        #expect(
            facts.currentRenewal?.value
                == Renewal(
                    productID: "plus", renewsToProductID: "weekly", willRenew: false, inBillingRetry: true,
                    graceExpiresAt: day(46)))
        let denied = facts.adding(answer(33, [month], renewal(true, retry: false, grace: 50)))
        #expect(denied.currentRenewal?.value == renewal(true, retry: false, grace: 50))
        #expect(denied.currentRenewal?.asOf == day(33))
    }

    @Test(
        "After the last payment of a term both wills are the customer's, whatever Apple's status says on either channel"
    )
    func lastPayment() throws {
        for (number, tries, renews) in [11, 12].flatMap({ number in
            [(false, false), (false, true), (true, false), (true, true)].map { (number, $0, $1) }
        }) {
            var month = month
            month.sale = Sale(
                plan: Sale.monthly, payment: Sale.Payment(number: number, total: 12, termEndsAt: day(30)))
            var said = renewal(tries)
            said.term = TermWill(renews: renews, productID: "monthly", plan: Sale.monthly)
            let last = answer(10, [month], said)
            let other = answer(11, [row("1", 0, 30)], renewal(!renews))
            for answers in [[last], [last, other]] {
                let state = try #require(settle(answers).state)
                let next = number == 12 ? renews : answers.count == 1 ? tries : !renews
                #expect(state.nextPayment == next && state.willRenew == renews, "\(number) \(tries) \(renews)")
                let after = state.timeline.span(at: day(30) + .minutes(5))?.state
                #expect(after == (next ? .awaitingRenewal : .expired), "\(number) \(tries) \(renews)")
            }
        }
    }

    @Test("Grace goes on to its date although later answers leave the date out")
    func graceOutlastsSilence() {
        let silent = renewal(intent: "2", retry: true)
        let table: [(String, [SubscriptionEvidence])] = [
            ("while it runs", [answer(31, [month], inGrace), answer(35, [month], silent)]),
            ("after it", [answer(31, [month], inGrace), answer(50, [month], silent)]),
            ("nothing about renewal", [answer(31, [month], inGrace), answer(35, [month])]),
            ("in another order", [answer(50, [month], silent), answer(31, [month], inGrace)]),
        ]
        for (name, answers) in table {
            #expect(
                settle(answers, policy: strictPolicy).state.map { drawing($0.timeline) }
                    == "0 active monthly | 30 grace_period monthly | 46 billing_retry monthly", "\(name)")
        }
    }

    @Test("Retry given up after grace ends no access that was given")
    func givenUpAfterGrace() {
        let over = renewal(false, intent: "2", retry: false)
        let (state, events) = settle([answer(31, [month], inGrace), answer(95, [month], over)], policy: strictPolicy)
        #expect(
            state.map { drawing($0.timeline) }
                == "0 active monthly | 30 grace_period monthly | 46 expired/billing_error monthly")
        #expect(events.last?.first { $0.kind == .billingGraceExpired }?.occurredAt == day(46))
    }

    @Test("Grace that Apple gave up ends with that answer, and not before; a later date counts again")
    func givenUpInGrace() {
        let over = renewal(false, intent: "2", retry: false)
        let ended = "0 active monthly | 30 grace_period monthly | 35 expired/billing_error monthly"
        let first = answer(31, [month], inGrace)
        #expect(line(first, answer(35, [month], over)) == ended)
        #expect(line(first, answer(35, [month], over), answer(38, [month], over)) == ended)
        #expect(line(answer(38, [month], over), answer(35, [month], over), first) == ended)
        #expect(
            line(first, answer(35, [month], renewal(false, intent: "1")))
                == "0 active monthly | 30 grace_period monthly | 35 expired/voluntary monthly", "by the customer")
        #expect(
            line(first, answer(35, [month], over), answer(38, [month], renewal(retry: true)))
                == "0 active monthly | 30 grace_period monthly | 35 billing_retry monthly", "not resurrected")
        #expect(
            line(first, answer(35, [month], over), answer(38, [month], inGrace))
                == "0 active monthly | 30 grace_period monthly | 46 billing_retry monthly")
        #expect(
            line(first, answer(35, [month], renewal(false, intent: "2", retry: false, grace: 46)))
                == "0 active monthly | 30 grace_period monthly | 46 expired/billing_error monthly",
            "the date beside it holds")
    }

    @Test("A retry that a newer row leaves out is over, where that row gives a reason or the status of renewal")
    func retryLeftOut() {
        let retrying = answer(31, [month], renewal(intent: "2", retry: true))
        let over = "0 active monthly | 30 expired/billing_error monthly"
        let table: [(String, Renewal, String)] = [
            ("with the reason", renewal(false, intent: "2"), over),
            ("with the reason alone", Renewal(productID: "monthly", expirationIntent: "2"), over),
            ("with the status alone", renewal(false), "0 active monthly | 30 expired/voluntary monthly"),
            ("with neither", Renewal(productID: "monthly"), "0 active monthly | 30 billing_retry monthly"),
            ("again", renewal(intent: "2", retry: true), "0 active monthly | 30 billing_retry monthly"),
        ]
        for (name, said, drawn) in table {
            #expect(line(retrying, answer(35, [month], said)) == drawn, "\(name)")
            #expect(line(answer(35, [month], said), retrying) == drawn, "\(name), in another order")
        }
        let (_, events) = settle([retrying, answer(35, [month], renewal(false, intent: "2"))])
        #expect(kinds(events).last == "subscription.expired auto_renew.disabled")
        let granted = answer(31, [month], inGrace)
        #expect(
            line(granted, answer(35, [month], renewal(false, intent: "2")))
                == "0 active monthly | 30 grace_period monthly | 46 expired/billing_error monthly",
            "only a stated 0 ends grace")
    }

    @Test("What was said of a period is void once a later one has answered it, wherever that starts")
    func laterPeriodAnswers() {
        let recovered = [month, row("2", 30, 60)]
        let state = settle([answer(31, [month], inGrace), answer(33, recovered)]).state
        #expect(state?.facts.currentRenewal == nil)
        #expect(state?.willRenew == nil)
        #expect(
            state.map { drawing($0.timeline) }
                == "0 active monthly | 30 active monthly | 60 awaiting_renewal/renewal monthly"
                + " | 60.083 expired/unknown monthly")
        #expect(
            state?.outageAllowance == OutageAllowance(expected: true, accessEndsAt: day(60) + standardPolicy.leeway))
        let lagging = settle([answer(33, recovered, renewal()), answer(34, [month], inGrace)]).state
        #expect(lagging?.facts.currentRenewal?.value == renewal(), "an answer without the row speaks of the one before")
    }

    @Test("What Apple repeats of an earlier period while a later one runs never ends the later one")
    func repeatedWhileRunning() {
        let recovered = [month, row("2", 30, 60)]
        let repeated = renewal(intent: "2", retry: true, grace: 46)
        let expected =
            "0 active monthly | 30 active monthly | 60 awaiting_renewal/renewal monthly"
            + " | 60.083 expired/unknown monthly"
        let table: [(String, [SubscriptionEvidence])] = [
            ("in the answer with the recovery", [answer(33, recovered, repeated)]),
            ("later without the row", [answer(33, recovered, repeated), answer(40, recovered)]),
            (
                "later without the flag",
                [answer(33, recovered, repeated), answer(40, recovered, Renewal(productID: "monthly"))]
            ),
        ]
        for (name, answers) in table {
            let state = settle([answer(31, [month], inGrace)] + answers).state
            #expect(state.map { drawing($0.timeline) } == expected, "\(name)")
            #expect(
                state?.outageAllowance
                    == OutageAllowance(expected: true, accessEndsAt: day(60) + standardPolicy.leeway), "\(name)")
        }
        let failed = settle([answer(33, recovered, repeated), answer(61, recovered, repeated)]).state
        #expect(
            failed.map { drawing($0.timeline) }
                == "0 active monthly | 30 active monthly | 60 billing_retry monthly", "said after the end, it counts")
    }

    private let graceByStatus = renewal(intent: "2", retry: true, graceByStatus: true)

    @Test("A status of grace without a date gives access for as long as grace can last")
    func graceWithoutADate() {
        #expect(
            line(answer(31, [month], graceByStatus))
                == "0 active monthly | 30 grace_period monthly | 58 billing_retry monthly")
        let weekly = renewal(product: "weekly", intent: "2", retry: true, graceByStatus: true)
        #expect(
            line(answer(8, [row("1", 0, 7, product: "weekly")], weekly))
                == "0 active weekly | 7 grace_period weekly | 13 billing_retry weekly")
        #expect(
            line(answer(8, [row("1", 0, 7, trial: true)], graceByStatus))
                == "0 active monthly +trial | 7 grace_period monthly +trial | 35 billing_retry monthly +trial",
            "a trial of a week says nothing about the product")
        let longer = "0 active weekly | 7.042 grace_period weekly | 13.042 billing_retry weekly"
        #expect(
            line(answer(8, [row("1", 0, 7 + 1 / 24.0, product: "weekly")], weekly)) == longer, "the clock goes back")
        var intro = row("1", 0, 7, product: "weekly", trial: false)
        intro.isIntro = true
        #expect(
            line(answer(8, [intro], weekly))
                == "0 active weekly +intro | 7 grace_period weekly +intro | 13 billing_retry weekly +intro")
        let offers: [WritableKeyPath<TransactionRow, String?>] = [\.promotionalOfferID, \.offerCodeRefName]
        for change in offers {
            var offered = row("1", 0, 7, product: "weekly")
            offered[keyPath: change] = "offer"
            #expect(line(answer(8, [offered], weekly))?.contains(" | 35 billing_retry") == true)
        }
        #expect(line(answer(29, [month], graceByStatus)) == line(answer(29, [month], renewal())), "before the end")
        var dated = answer(31, [month], graceByStatus)
        dated.renewals[0].path = "statuses.data[0].lastTransactions[0].signedRenewalInfo"
        let facts = SubscriptionFacts(dated)
        #expect(
            verdict(of: facts, at: day(31), policy: strictPolicy).because.last
                == Ground(rule: "grace", path: "statuses.data[0].lastTransactions[0].status", value: "4"))
    }

    @Test(
        "Another status ends grace without a date, silence does not, a date wins, and the access that was given stays")
    func graceWithoutADateEnds() {
        let retry = renewal(intent: "2", retry: true, graceByStatus: false)
        let first = [answer(31, [month], graceByStatus), answer(34, [month], graceByStatus)]
        let ended = "0 active monthly | 30 grace_period monthly | 35 billing_retry monthly"
        let table: [(String, [SubscriptionEvidence], String)] = [
            ("retry", first + [answer(35, [month], retry)], ended),
            ("said again", first + [answer(35, [month], retry), answer(40, [month], retry)], ended),
            ("in another order", [answer(35, [month], retry)] + first.reversed(), ended),
            (
                "over", first + [answer(35, [month], renewal(false, intent: "2", retry: false))],
                "0 active monthly | 30 grace_period monthly | 35 expired/billing_error monthly"
            ),
            (
                "no status", first + [answer(35, [month], renewal(intent: "2", retry: true))],
                "0 active monthly | 30 grace_period monthly | 58 billing_retry monthly"
            ),
            (
                "ended again",
                first + [answer(35, [month], retry), answer(36, [month], graceByStatus), answer(40, [month], retry)],
                "0 active monthly | 30 grace_period monthly | 36 billing_retry monthly"
            ),
            (
                "a date that was over", first + [answer(35, [month], renewal(intent: "2", retry: true, grace: 30.5))],
                "0 active monthly | 30 grace_period monthly | 58 billing_retry monthly"
            ),
            (
                "another status beside a date that is over",
                first + [answer(37, [month], renewal(intent: "2", retry: true, grace: 30.5, graceByStatus: false))],
                "0 active monthly | 30 grace_period monthly | 37 billing_retry monthly"
            ),
            (
                "another status after a date", [answer(31, [month], inGrace), answer(35, [month], retry)], ended
            ),
            (
                "a date", first + [answer(35, [month], inGrace)],
                "0 active monthly | 30 grace_period monthly | 46 billing_retry monthly"
            ),
            (
                "a date before", [answer(30.5, [month], inGrace)] + first,
                "0 active monthly | 30 grace_period monthly | 46 billing_retry monthly"
            ),
            (
                "granted again", first + [answer(35, [month], retry), answer(36, [month], graceByStatus)],
                "0 active monthly | 30 grace_period monthly | 58 billing_retry monthly"
            ),
            (
                "paid", first + [answer(35, [month, row("2", 35, 65)], renewal())],
                "0 active monthly | 30 grace_period monthly | 35 active monthly"
                    + " | 65 expired/unknown monthly"
            ),
        ]
        for (name, answers, expected) in table {
            #expect(settle(answers, policy: strictPolicy).state.map { drawing($0.timeline) } == expected, "\(name)")
        }
    }

    @Test("Grace without a date has one event at each end, and the same status again is no change")
    func graceWithoutADateIsReported() {
        let (state, events) = settle(
            [
                answer(29, [month], renewal()), answer(31, [month], graceByStatus), answer(34, [month], graceByStatus),
                answer(35, [month], renewal(intent: "2", retry: true, graceByStatus: false)),
            ], policy: strictPolicy)
        #expect(
            events.map { $0.map(\.kind) }
                == [[.subscriptionStarted], [.billingGraceEntered], [], [.billingGraceExpired]])
        #expect(events[1].first?.detail["grace_expires_at"] == .text(day(58).iso8601))
        #expect(state?.version == 3, "the same status again is no change")
    }

    @Test("Grace that was granted holds until Apple ends it, whichever channel answers, in whatever order")
    func grantedGrace() {
        var (held, left) = (0, 0)
        for seed in 0..<2_000 as Range<UInt64> {
            var random = Seeded(seed: 32_000_000 + seed)
            let story = GraceStory(using: &random)
            var (state, wasInGrace) = (nil as SubscriptionState?, nil as Bool?)
            for (answer, grace) in zip(story.answers, story.graces) {
                let result = reconcile(state, with: answer, policy: strictPolicy)
                let found = verdict(of: result.state.facts, at: answer.asOf, policy: strictPolicy)
                #expect((found.state == .gracePeriod) == (grace != nil), "\(random)")
                #expect(grace == nil || found.entitledUntil == grace?.until, "\(random)")
                let plan = nextCheck(
                    for: [result.state], environment: .production, outcome: .verified, now: answer.asOf, seed: seed,
                    policy: strictPolicy)
                if grace?.isDated == false, case .at(let next) = plan {
                    #expect(next <= answer.asOf + .hours(6), "\(random)")
                }
                let kinds = result.events.map(\.kind)
                let (entered, expired) = (
                    kinds.count { $0 == .billingGraceEntered }, kinds.count { $0 == .billingGraceExpired }
                )
                #expect(entered <= (wasInGrace == false ? 1 : 0), "\(random)")
                if let wasInGrace, ![.active, .revoked].contains(found.state) {
                    #expect(entered - expired == (grace == nil ? 0 : 1) - (wasInGrace ? 1 : 0), "\(random)")
                }
                left += expired
                (state, wasInGrace) = (result.state, grace != nil)
                held += grace == nil ? 0 : 1
            }
            let shuffled = settle(story.answers.shuffled(using: &random), policy: strictPolicy).state
            #expect(shuffled?.facts == state?.facts && shuffled?.timeline == state?.timeline, "\(random)")
        }
        #expect(held > 2_000 && left > 500, "\(held) answers in grace, \(left) ends")
    }

    @Test("Merging is commutative, associative and idempotent, of one instant too")
    func laws() {
        var random = Seeded(seed: 31)
        for _ in 0..<2_000 {
            let facts = (0..<3).map { _ in statement(using: &random) }
            let (a, b, c) = (facts[0], facts[1], facts[2])
            #expect(a.merging(a) == a, "\(random)")
            #expect(a.merging(b) == b.merging(a), "\(random)")
            #expect(a.merging(b).merging(c) == a.merging(b.merging(c)), "\(random)")
        }
    }

    private func statement(using random: inout Seeded) -> RenewalFacts {
        let asOf = Double(Int.random(in: 30...33, using: &random))
        let graces: [Double?] = [nil, nil, 40, 46]
        let said = Renewal(
            productID: Bool.random(using: &random) ? "monthly" : "plus",
            renewsToProductID: [nil, "weekly", "monthly"].randomElement(using: &random) ?? nil,
            willRenew: [nil, true, false].randomElement(using: &random) ?? nil,
            expirationIntent: [nil, "1", "2"].randomElement(using: &random) ?? nil,
            inBillingRetry: [nil, true, false].randomElement(using: &random) ?? nil,
            graceExpiresAt: graces.randomElement(using: &random).flatMap { $0 }.map(day),
            isInGraceByStatus: [nil, true, false].randomElement(using: &random) ?? nil)
        return RenewalFacts(Fact(said, asOf: day(asOf), path: "pending_renewal_info[0]"))
    }
}

@Suite("Renewal facts are recorded") struct RenewalRecordTests {
    @Test("What is written down gives back fields of every age, and an equal answer writes no period")
    func olderFields() {
        let month = row("1", 0, 30)
        let given = answer(31, [month], renewal(intent: "2", retry: true, grace: 46))
        let silent = Renewal(productID: "monthly", expirationIntent: "2", inBillingRetry: false)
        let facts = SubscriptionFacts(given).adding(answer(35, [month], silent))
        var records = facts.records
        records[0].id = 1
        let ending = records[0].ending
        #expect(
            ending?.olderFields == [
                .willRenew: FactOrigin(asOf: day(31), path: "pending_renewal_info[0]"),
                .renewsToProductID: FactOrigin(asOf: day(31), path: "pending_renewal_info[0]"),
                .graceExpiresAt: FactOrigin(asOf: day(31), path: "pending_renewal_info[0]"),
            ])
        #expect(ending?.asOf == nil && ending?.gaveUpAt == day(35))
        let stored = SubscriptionFacts(
            originalTransactionID: subscriptionID, asOf: facts.asOf, records: records, renewal: facts.renewal)
        #expect(stored == facts)
        #expect(
            stored.adding(answer(36, [month], silent)).recordsToWrite(
                since: stored, policy: .standard(for: .production)
            ).isEmpty)
        #expect(facts.clocks == [day(31), day(35)])
        let word = SubscriptionFacts(answer(31, [month], renewal(intent: "2", retry: true, graceByStatus: true)))
            .adding(answer(35, [month], renewal(intent: "2", retry: true, graceByStatus: false)))
            .adding(answer(38, [month], renewal(intent: "2", retry: true)))
        #expect(
            word.records[0].ending?.olderFields.keys.sorted { $0.rawValue < $1.rawValue } == [.gaveUp, .graceByStatus])
        let restored = SubscriptionFacts(
            originalTransactionID: subscriptionID, asOf: word.asOf, records: word.records, renewal: word.renewal)
        #expect(restored == word && word.clocks == [day(31), day(35), day(38)])
    }
}

/// Answers of both channels after a payment failed, with the grace that they grant, by a few lines of our own.
private struct GraceStory {
    private(set) var answers: [SubscriptionEvidence] = []
    /// The grace as of each answer; nil without grace.
    private(set) var graces: [(until: Instant, isDated: Bool)?] = []

    init(using random: inout Seeded) {
        let isWeekly = Bool.random(using: &random)
        let (length, product): (Double, ProductID) = isWeekly ? (7, "weekly") : (30, "monthly")
        let limit = length + (isWeekly ? 6 : 28)
        var (now, date, end) = (length, nil as Double?, nil as Double?)
        for _ in 0..<Int.random(in: 1...9, using: &random) {
            now += Double.random(in: 0.01...(limit - length) / 3, using: &random)
            var (rows, said) = ([row("1", 0, length, product: product)], nil as Renewal?)
            let retry = renewal(product: product, intent: "2", retry: true)
            switch Int.random(in: 0..<15, using: &random) {
            case 0...3:
                said = retry
                said?.isInGraceByStatus = true
                end = date.flatMap { $0 > now ? $0 : nil } ?? limit
            case 4:
                date = now + 2
                (said, end) = (retry, date)
                said?.graceExpiresAt = day(now + 2)
            case 5, 6:
                (said, end) = (Bool.random(using: &random) ? retry : renewal(false, product: product), nil)
                said?.isInGraceByStatus = false
            case 7: (said, end) = (renewal(false, product: product, intent: "2", retry: false), nil)
            case 8: (said, end) = (renewal(false, product: product, intent: "1"), nil)
            case 9: said = retry
            case 10: said = renewal(product: product, intent: "2")
            case 11: said = renewal(product: product)
            case 12: break
            case 13:
                rows.append(row("2", now, now + length, product: product))
                end = nil
            default:
                rows[0].cancelledAt = day(now)
                end = nil
            }
            answers.append(said.map { answer(now, rows, $0) } ?? answer(now, rows))
            graces.append(end.flatMap { $0 > now ? (day($0), $0 != limit) : nil })
            if rows.count > 1 || rows[0].cancelledAt != nil { return }
        }
    }
}
