import Foundation
import Testing

@testable import AppStoreSimulator

@Suite("Notifications arrive over HTTP as Apple sends them") struct NotificationDeliveryTests {
    private static func store(_ customers: Int, seed: UInt64 = 31) -> Simulator {
        print("seed \(seed)")
        var options = SimulatorOptions(seed: seed)
        options.customers = customers
        options.sandboxCustomers = 0
        options.port = 0
        options.monthSeconds = 6
        return Simulator(options)
    }

    /// Waits until something is so; a test that never sees it ends by its time limit.
    private static func until(_ isSo: () throws -> Bool) async throws {
        while try isSo() == false { try await Task.sleep(for: .milliseconds(20)) }
    }

    private static func made(_ store: Simulator) -> [MadeNotification] {
        store.collectNotifications()
        return store.notifications.made()
    }

    @Test("Every notification arrives once, those of a customer in their order", .timeLimit(.minutes(1)))
    func arrive() async throws {
        let (store, receiver) = (Self.store(30), NotificationReceiver())
        try await receiver.listening { url in
            try await store.serving { _ in
                store.notify(NotificationOptions(url: url))
                try await Self.until { Self.made(store).count { $0.attempts.last?.result == .success } > 60 }
            }
        }
        let arrived = receiver.claims.compactMap { $0.text("notificationUUID") }
        // The last ones may be under way when the store stops.
        let sent = store.notifications.made().filter { $0.attempts.last?.result == .success }
        #expect(Set(arrived).count == arrived.count && Set(sent.map(\.uuid)).isSubset(of: arrived))
        for (_, own) in Dictionary(grouping: sent, by: \.occasion.account) {
            let uuids = own.map(\.uuid)
            #expect(arrived.filter { uuids.contains($0) } == uuids)
        }
    }

    @Test("A refused notification comes again under its id until it is taken", .timeLimit(.minutes(1)))
    func retried() async throws {
        let receiver = NotificationReceiver { _, earlier in earlier < 2 ? 500 : 206 }
        let store = Self.store(0)
        try await receiver.listening { url in
            try await store.serving { _ in
                store.notify(NotificationOptions(url: url))
                _ = store.createCustomer(CustomerScript())
                let tester = store.createCustomer(CustomerScript(), environment: .sandbox).customer
                try await Self.until {
                    Self.made(store).first { $0.occasion.environment == .production }?.attempts.count == 3
                        && Self.made(store).contains {
                            CustomerName.index(of: tester) == $0.occasion.account && $0.hasFailed
                        }
                }
            }
        }
        let first = store.notifications.made().first { $0.occasion.environment == .production }
        #expect(first?.attempts.map(\.result) == [.otherStatus, .otherStatus, .success])
        #expect(receiver.claims.count { $0.text("notificationUUID") == first?.uuid } == 3)
        let tested = store.notifications.made().first { $0.occasion.environment == .sandbox }
        #expect(tested?.attempts.map(\.result) == [.otherStatus], "the sandbox tries once")
    }

    @Test(
        "Dropped ones never arrive, doubled ones come twice, others late",
        .timeLimit(.minutes(1)))
    func troubled() async throws {
        let (store, receiver) = (Self.store(60), NotificationReceiver())
        try await receiver.listening { url in
            try await store.serving { _ in
                var options = NotificationOptions(url: url)
                (options.shareDropped, options.shareDoubled, options.shareReordered) = (0.3, 0.3, 0.3)
                options.delaySeconds = 0.2
                store.notify(options)
                try await Self.until { Self.made(store).count { !$0.attempts.isEmpty } > 150 }
            }
        }
        let arrived = receiver.claims
        let uuids = arrived.compactMap { $0.text("notificationUUID") }
        let made = store.notifications.made().filter { !$0.attempts.isEmpty && ($0.isDropped || !$0.hasFailed) }
        let dropped = Set(made.filter(\.isDropped).map(\.uuid))
        #expect(dropped.count > 20 && dropped.isDisjoint(with: uuids), "\(dropped.count) of \(made.count)")
        #expect(made.filter(\.isDropped).allSatisfy { $0.attempts.allSatisfy { $0.result == .noResponse } })
        #expect(Set(made.map(\.uuid)).subtracting(dropped).isSubset(of: uuids))
        // What the receiver was too slow for is sent again.
        let answered = uuids.filter(Set(made.map(\.uuid)).contains)
        let times = Dictionary(grouping: answered) { $0 }.mapValues(\.count)
        #expect(times.count { $1 == 2 } > 20 && times.allSatisfy { $1 <= 2 })
        let dates = arrived.compactMap { $0.number("signedDate") }
        #expect(zip(dates, dates.dropFirst()).count { $0 > $1 } > 5, "later ones overtake")
    }

    @Test("Version 1 has the secret, the receipt and the newest rows", .timeLimit(.minutes(1)))
    func firstVersion() async throws {
        let (store, receiver) = (Self.store(0), NotificationReceiver())
        try await receiver.listening { url in
            try await store.serving { _ in
                var options = NotificationOptions(url: url)
                options.version = .first
                store.notify(options)
                let customer = store.createCustomer(CustomerScript()).customer
                try await Self.until { receiver.bodies.count == 1 }
                _ = try store.act(CustomerAction(.disableRenewal), on: customer)
                try await Self.until { receiver.bodies.count == 2 }
            }
        }
        let bodies = try receiver.bodies.map {
            try #require(try JSONSerialization.jsonObject(with: Data($0)) as? [String: Any])
        }
        #expect(bodies.texts("notification_type") == ["INITIAL_BUY", "DID_CHANGE_RENEWAL_STATUS"])
        #expect(bodies.texts("auto_renew_status") == ["true", "false"])
        #expect(bodies.allSatisfy { $0.text("password") == store.sharedSecret && $0.text("environment") == "PROD" })
        let receipt = try #require(bodies[1]["unified_receipt"] as? [String: Any])
        #expect(receipt.latestRows.count == 1 && receipt.pending.text("auto_renew_status") == "0")
        #expect(try store.ask(receipt.text("latest_receipt") ?? "").status == 0)
    }
}

extension MadeNotification {
    /// Whether it was tried and never arrived.
    fileprivate var hasFailed: Bool { !attempts.isEmpty && attempts.allSatisfy { $0.result != .success } }
}
