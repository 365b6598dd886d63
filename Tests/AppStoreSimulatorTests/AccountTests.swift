import Testing

@testable import AppStoreSimulator

@Suite("Accounts hold several subscriptions") struct AccountTests {
    let hand = ManualClock()
    let store: Simulator

    init() { store = hand.emptyStore() }

    @Test("Two groups of subscriptions live on their own")
    func twoGroupsLiveOnTheirOwn() throws {
        let customer = store.createCustomer(ScriptKind.twoGroups.script)
        var off = CustomerAction(.disableRenewal)
        off.subscription = 1
        #expect(try store.act(off, on: customer.customer))
        hand.move(seconds: 70)
        let answer = try store.ask(customer.receipt)
        let pending = try #require(answer["pending_renewal_info"] as? [[String: Any]])
        #expect(pending.map { $0["auto_renew_status"] as? String } == ["1", "0"])
        #expect(pending.map { $0["expiration_intent"] as? String } == [nil, "1"])
        #expect(
            Set(answer.latestRows.compactMap { $0["subscription_group_identifier"] as? String })
                == ["20000001", "20000002"])
        #expect(Set(answer.latestRows.compactMap { $0["original_transaction_id"] as? String }).count == 2)
        #expect(answer.latestRows.count == 3)
        #expect(store.truth(of: customer.customer)?.subscriptions.map { $0.access } == [.paid, AccessTruth.none])
        let short = try store.ask(customer.receipt, excludingOld: true)
        #expect(short.latestRows.count == 2)
        off.subscription = 7
        #expect(throws: ActionRefused.self) { try store.act(off, on: customer.customer) }
    }

    @Test("A shared subscription stands beside an own one")
    func aShareBesideAnOwnSubscription() throws {
        var share = CustomerScript()
        share.isFamilyShared = true
        var script = CustomerScript()
        script.alongside = [share]
        script.hasAccountToken = true
        let customer = store.createCustomer(script)
        let rows = try store.ask(customer.receipt).latestRows
        let shared = try #require(rows.first { $0["in_app_ownership_type"] as? String == "FAMILY_SHARED" })
        let own = try #require(rows.first { $0["in_app_ownership_type"] as? String == "PURCHASED" })
        #expect(shared["web_order_line_item_id"] == nil && shared["app_account_token"] == nil)
        #expect(own["app_account_token"] as? String == customer.appAccountToken)
        #expect(customer.appAccountToken?.count == 36)
        var revoke = CustomerAction(.revokeFamily)
        revoke.subscription = 1
        #expect(try store.act(revoke, on: customer.customer))
        #expect(store.truth(of: customer.customer)?.subscriptions.map { $0.access } == [.paid, AccessTruth.none])
    }

    @Test("A second customer restores")
    func aSecondCustomerRestores() throws {
        let customer = store.createCustomer(ScriptKind.sharesAccount.script)
        hand.move(seconds: 89)
        #expect(store.uploads().map { $0.customer } == ["c000000"])
        #expect(store.truth(of: "c000000")?.secondCustomer == nil)
        hand.move(seconds: 1)
        let upload = try #require(store.uploads().last)
        #expect(upload.customer == "c000000b" && upload.reason == .restore)
        let first = try store.ask(customer.receipt)
        let second = try store.ask(upload.receipt)
        func ids(_ rows: [[String: Any]], _ key: String) -> Set<String> { Set(rows.compactMap { $0[key] as? String }) }
        #expect(ids(second.deviceRows, "original_transaction_id") == ids(first.deviceRows, "original_transaction_id"))
        #expect(ids(second.deviceRows, "transaction_id").isDisjoint(with: ids(first.latestRows, "transaction_id")))
        #expect(
            ids(second.deviceRows, "web_order_line_item_id") == ids(first.latestRows, "web_order_line_item_id"))
        #expect(store.truth(of: "c000000b")?.secondCustomer == "c000000b")
    }

    @Test("Deletion ends every subscription")
    func deletionEndsEverySubscription() throws {
        let customer = store.createCustomer(ScriptKind.twoGroups.script)
        hand.move(seconds: 10)
        #expect(try store.act(CustomerAction.Kind.deleteAccount.action, on: customer.customer))
        hand.move(seconds: 300)
        #expect(try store.ask(customer.receipt).status == 21010)
        let truth = try #require(store.truth(of: customer.customer))
        #expect(truth.accountDeleted && truth.subscriptions.map { $0.periods.count } == [1, 1])
        #expect(throws: ActionRefused.self) { try store.act(CustomerAction(.buy), on: customer.customer) }
    }
}
