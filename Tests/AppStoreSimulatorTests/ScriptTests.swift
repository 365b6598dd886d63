import Testing

@testable import AppStoreSimulator

@Suite("A customer's life follows its script") struct ScriptTests {
    /// What each script leads to within five months of 60 seconds.
    static let stories: [(ScriptKind, [LifeEventKind])] = [
        (.loyal, [.purchased, .renewed, .renewed, .renewed, .renewed]),
        (.cancels, [.purchased, .renewalDisabled, .lapsed]),
        (.refunded, [.purchased, .renewed, .refunded, .renewalDisabled]),
        (.refundReversed, [.purchased, .renewed, .refunded, .renewalDisabled, .refundReversed, .lapsed]),
        (.trialConverts, [.trialStarted, .converted, .renewed, .renewed, .renewed, .renewed]),
        (.payAsYouGo, [.offerStarted, .renewed, .renewed, .renewed, .renewed]),
        (.payUpFront, [.offerStarted, .renewed, .renewed, .renewed]),
        (.offerCode, [.offerStarted, .renewed, .renewed, .renewed, .renewed]),
        (.promotionalOffer, [.purchased, .offerRedeemed, .renewed, .renewed, .renewed, .renewed]),
        (.crossgrades, [.purchased, .renewed, .crossgraded, .renewed, .renewed, .renewed]),
        (
            .priceAccepted,
            [.purchased, .renewed, .priceIncreasePending, .priceIncreaseAccepted, .renewed, .renewed, .renewed]
        ),
        (.priceRefused, [.purchased, .renewed, .priceIncreasePending, .lapsed]),
        (.withdrawn, [.purchased, .renewed, .lapsed]),
        (.brokenOff, [.purchased, .renewed, .lapsed]),
        (.olderRefunded, [.purchased, .renewed, .refunded, .renewed, .renewed, .renewed]),
        (.extended, [.purchased, .renewed, .extended, .renewed, .renewed, .renewed]),
        (.trialEnds, [.trialStarted, .renewalDisabled, .lapsed]),
        (.graceRecovers, [.purchased, .billingFailed, .graceStarted, .recovered, .renewed, .renewed, .renewed]),
        (.graceEnds, [.purchased, .billingFailed, .graceStarted, .graceEnded, .lapsed]),
        (.retryRecovers, [.purchased, .billingFailed, .recovered, .renewed, .renewed, .renewed]),
        (.retryEnds, [.purchased, .billingFailed, .lapsed]),
        (.upgrades, [.purchased, .renewed, .upgraded, .renewed, .renewed, .renewed]),
        (.downgrades, [.purchased, .downgradeScheduled, .changedAtRenewal, .renewed, .renewed, .renewed]),
        (.resubscribes, [.purchased, .renewalDisabled, .lapsed, .resubscribed, .renewed, .renewed]),
        (.familyRevoked, [.purchased, .renewed, .revoked]),
        (.deletesAccount, [.purchased, .renewed, .accountDeleted]),
        (.commits, [.purchased, .renewed, .renewed, .renewed, .renewed]),
        (.commitmentCancelled, [.purchased, .renewed, .renewed, .renewalDisabled, .renewed, .renewed]),
        (.commitmentRecovers, [.purchased, .billingFailed, .recovered, .renewed, .renewed, .renewed]),
        (.commitmentFails, [.purchased, .billingFailed, .lapsed]),
        (.commitmentRefunded, [.purchased, .renewed, .refunded, .renewalDisabled]),
        (.commitmentSwitches, [.purchased, .renewed, .renewed, .renewed, .renewed, .planSwitchScheduled]),
        (.buysSeats, [.purchased, .renewed, .seatsAdded, .seatsReduced, .seatsRefunded, .renewed, .renewed, .renewed]),
        (.seatRevoked, [.purchased, .renewed, .revoked]),
    ]

    @Test("Each script has its story", arguments: stories)
    func story(kind: ScriptKind, expected: [LifeEventKind]) throws {
        let hand = ManualClock()
        let store = hand.emptyStore()
        let customer = store.createCustomer(kind.script)
        // Just before the fifth month ends.
        hand.move(seconds: 299.999)
        let log = try #require(store.truth(of: customer.customer)?.subscriptions.first?.log)
        #expect(log.map { $0.kind } == expected)
    }

    @Test("Recovery in grace keeps the anchor and later moves it")
    func recoveryInGraceKeepsTheAnchorAndLaterMovesIt() throws {
        for (kind, gap) in [(ScriptKind.graceRecovers, Int64(0)), (.retryRecovers, 42_000)] {
            let hand = ManualClock()
            let store = hand.emptyStore()
            let customer = store.createCustomer(kind.script)
            hand.move(seconds: 110)
            let periods = try #require(store.truth(of: customer.customer)?.subscriptions.first?.periods)
            try #require(periods.count == 2)
            #expect(periods[1].purchase - periods[0].expires == gap, "\(kind)")
        }
    }

    @Test("The sandbox renews twelve times")
    func theSandboxRenewsTwelveTimes() throws {
        let hand = ManualClock()
        let store = hand.emptyStore()
        let customer = store.createCustomer(ScriptKind.loyal.script, environment: .sandbox)
        hand.move(seconds: 60 * 20)
        let subscription = try #require(store.truth(of: customer.customer)?.subscriptions.first)
        #expect(subscription.periods.count == 13)
        #expect(subscription.expirationIntent == 1)
        #expect(!subscription.autoRenewStatus)
    }

    @Test("Early and late charges are booked where they should be")
    func earlyAndLateChargesAreBookedWhereTheyShould() throws {
        for habit in CustomerScript.ChargeHabit.allCases {
            let hand = ManualClock()
            let store = hand.emptyStore()
            var script = CustomerScript()
            script.chargeHabit = habit
            let customer = store.createCustomer(script)
            hand.move(seconds: 60 * 10 + 5)
            let periods = try #require(store.truth(of: customer.customer)?.subscriptions.first?.periods)
            try #require(periods.count == 11)
            for period in periods.dropFirst() {
                let distance = period.booked - period.purchase
                switch habit {
                case .early: #expect((-2000 ... -1).contains(distance))
                case .onTime: #expect(distance == 0)
                case .late: #expect((1...600).contains(distance))
                }
            }
        }
    }

    @Test("A customer who is made with a past has one")
    func aCustomerMadeWithAPastHasOne() throws {
        let store = ManualClock().emptyStore()
        var script = CustomerScript()
        script.pastPeriods = 4
        let customer = store.createCustomer(script)
        let periods = try #require(store.truth(of: customer.customer)?.subscriptions.first?.periods)
        #expect(periods.count == 5)
        #expect(periods.last?.purchase == ManualClock.start)
    }
}
