import Foundation
import HTTPTypes
import Hummingbird
import Subscriptions
import Synchronization
import Testing

@testable import AppStore

@Suite("Each answer of the Server API has its outcome")
struct ServerOutcomeTests {
    private let store: ServerStore

    init() throws { store = try ServerStore() }

    @Test(
        "Codes that end a check",
        arguments: [
            (4_040_002, .noAnswer("Apple has a temporary problem (4040002).", code: 4_040_002)),
            (4_040_004, .noAnswer("Apple has a temporary problem (4040004).", code: 4_040_004)),
            (4_040_006, .noAnswer("Apple has a temporary problem (4040006).", code: 4_040_006)),
            (5_000_000, .noAnswer("Apple has a temporary problem (5000000).", code: 5_000_000)),
            (5_000_001, .noAnswer("Apple has a temporary problem (5000001).", code: 5_000_001)),
            (4_040_003, .appRefused(code: 4_040_003)), (4_000_002, .appRefused(code: 4_000_002)),
            (4_000_006, .idRefused(code: 4_000_006)), (4_000_008, .idRefused(code: 4_000_008)),
            (4_000_048, .idRefused(code: 4_000_048)), (4_000_187, .idRefused(code: 4_000_187)),
            (4_000_023, .ourFault(code: 4_000_023)), (4_040_001, .unknownTransaction(code: 4_040_001)),
        ] as [(Int, ServerVerdict)])
    func codes(_ code: Int, _ verdict: ServerVerdict) async throws {
        let (answers, asked) = try await store.ask { _ in ServerStore.error(code) }
        #expect(answers.first?.server == verdict)
        #expect(answers.first?.environment == .production && asked.count == 1 && answers.first?.calls == 1)
        #expect(answers.first?.body == [] && answers.first?.failure == verdict.sentence)
    }

    @Test(
        "What production does not know is asked of the sandbox once, at first sight", arguments: [4_040_010, 4_040_005])
    func sandbox(_ code: Int) async throws {
        let store = self.store
        let text = try store.transaction("1", ["environment": "Sandbox"])
        let page = try store.page([text], ["environment": "Sandbox"])
        let statuses = try store.statuses(text, ["environment": "Sandbox"])
        var (answers, asked) = try await store.ask {
            guard $0.path.hasPrefix("/sandbox") else { return ServerStore.error(code) }
            return .text($0.path.contains("subscriptions") ? statuses : page)
        }
        #expect(answers.first?.environment == .sandbox && answers.first?.server?.contents?.texts.count == 2)
        #expect(
            asked.map(\.path) == [
                "/inApps/v1/subscriptions/1", "/inApps/v2/history/1", "/sandbox/inApps/v1/subscriptions/1",
                "/sandbox/inApps/v2/history/1",
            ])
        for code in [4_040_010, 4_040_005, 4_040_001] {
            (answers, asked) = try await store.ask {
                ServerStore.error($0.path.hasPrefix("/sandbox") ? code : 4_040_010)
            }
            #expect(answers.first?.server == .unknownTransaction(code: code))
            #expect(asked.count == (code == 4_040_001 ? 3 : 4))
        }
        for request in [
            store.request(isFirstSight: false), store.request(sandboxAllowed: false),
        ] {
            (answers, asked) = try await store.ask(request) { _ in ServerStore.error(code) }
            #expect(answers.first?.server == .unknownTransaction(code: code) && asked.count == 2)
        }
    }

    @Test("A refused token is renewed once; then it is the key's fault, unless the app lives in the sandbox alone")
    func unauthorized() async throws {
        let store = self.store
        var (answers, asked) = try await store.ask(store.request(isFirstSight: false)) { _ in .text("", .unauthorized) }
        #expect(answers.first?.server == .keyRefused && asked.count == 2 && answers.first?.calls == 2)
        #expect(Set(asked.compactMap(\.authorization)).count == 2)
        let text = try store.transaction("1", ["environment": "Sandbox"])
        (answers, asked) = try await store.ask {
            try $0.path.hasPrefix("/sandbox")
                ? store.both($0, text, ["environment": "Sandbox"]) : .text("", .unauthorized)
        }
        #expect(answers.first?.environment == .sandbox && answers.first?.server?.contents != nil && asked.count == 4)
        // A key that production accepted before is refused there for another reason.
        let seen = Mutex(0)
        (answers, asked) = try await store.ask(times: 2) { _ in
            seen.withLock {
                $0 += 1; return $0
            } == 1 ? ServerStore.error(5_000_000) : .text("", .unauthorized)
        }
        #expect(answers.last?.server == .keyRefused && asked.count == 3)
    }

    @Test("Too many requests wait as long as Apple says: an instant in milliseconds")
    func tooMany() async throws {
        let until = Int64((Date().timeIntervalSince1970 + 40) * 1_000)
        let (answers, asked) = try await store.ask { _ in
            ServerStore.error(4_290_000, headers: [.retryAfter: "\(until)"])
        }
        #expect(answers.first?.server == .noAnswer("Apple asks for fewer requests (4290000).", code: 4_290_000))
        #expect(answers.first?.httpStatus == 429 && asked.count == 1)
        #expect((30...41).contains(answers.first?.retryAfterSeconds ?? 0))
    }

    @Test("An outage and what is no JSON say nothing")
    func outage() async throws {
        for response in ["<html>", "", "[1]", #"{"data":"#] {
            let (answers, _) = try await store.ask { _ in .text(response) }
            guard case .noAnswer? = answers.first?.server else {
                Issue.record("\(response): \(String(describing: answers.first?.server))")
                continue
            }
        }
        let (answers, _) = try await store.ask { _ in .text("", .badGateway) }
        guard case .noAnswer(_, code: nil)? = answers.first?.server else {
            Issue.record("\(String(describing: answers.first?.server))")
            return
        }
    }

    @Test("A text that cannot be verified says nothing, and its place is named")
    func unverified() async throws {
        let stranger = try ServerStore()
        let own = try store.transaction()
        for text in [try stranger.transaction(), String(own.dropLast(8)) + "AAAAAAAA", "no text"] {
            let (store, page) = (self.store, try store.page([own]))
            let (answers, _) = try await store.ask {
                .text(try $0.path.contains("subscriptions") ? store.statuses(text) : page)
            }
            guard case .unverified(let sentence)? = answers.first?.server else {
                Issue.record("\(String(describing: answers.first?.server))")
                continue
            }
            #expect(sentence.contains("statuses.data[0].lastTransactions[0].signedTransactionInfo"))
            #expect(answers.first?.body == [])
        }
    }

    /// What names the asked transaction "9", which the answer does not list; it lists transaction 1 of line item w1.
    struct Naming: CustomTestStringConvertible, Sendable {
        let testDescription: String
        var claims: [String: String] = [:]
        /// Whether the device sent it; else Apple's answer to Get Transaction Info is it.
        var isSent = true
        let isAccepted: Bool
    }

    private static let namings = [
        Naming(testDescription: "equal original id", isAccepted: true),
        Naming(
            testDescription: "equal line item, moved to another original id",
            claims: ["originalTransactionId": "7", "webOrderLineItemId": "w1"], isAccepted: true),
        Naming(
            testDescription: "neither", claims: ["originalTransactionId": "7", "webOrderLineItemId": "w7"],
            isAccepted: false),
        Naming(testDescription: "another app", claims: ["bundleId": "com.example.other"], isAccepted: false),
        Naming(testDescription: "the sandbox", claims: ["environment": "Sandbox"], isAccepted: false),
        Naming(testDescription: "a bare id, equal original id", isSent: false, isAccepted: true),
        Naming(
            testDescription: "a bare id, another one", claims: ["originalTransactionId": "7"], isSent: false,
            isAccepted: false),
    ]

    @Test("One purchase has several ids: its original id or line item in the answer decides", arguments: namings)
    func severalIDs(_ naming: Naming) async throws {
        let item = ["webOrderLineItemId": "w1"]
        let listed = try store.transaction("1", item)
        let (page, statuses) = (try store.page([listed]), try store.statuses(listed))
        let named = try store.transaction("9", naming.claims)
        var request = store.request()
        request.transactionID = "9"
        if naming.isSent { request.signedText = Array(named.utf8) }
        let (answers, asked) = try await store.ask(request) {
            if $0.path.contains("/transactions/") { return .text(#"{"signedTransactionInfo":"\#(named)"}"#) }
            return .text($0.path.contains("history") ? page : statuses)
        }
        #expect(
            asked.map(\.path) == ["/inApps/v1/subscriptions/9", "/inApps/v2/history/9"]
                + (naming.isSent ? [] : ["/inApps/v1/transactions/9"]))
        guard naming.isAccepted else {
            guard case .otherSubject? = answers.first?.server else {
                Issue.record("\(String(describing: answers.first?.server))")
                return
            }
            return
        }
        let contents = try #require(answers.first?.server?.contents)
        #expect(contents.asked == "9" && contents.named?.compact == Array(named.utf8) && contents.texts.count == 3)
        let later = try await store.ask(store.request(isFirstSight: false)) {
            .text($0.path.contains("history") ? page : statuses)
        }
        #expect(later.asked.count == 2, "only what was never verified is named")
    }

    @Test(
        "A bare id of which Apple cannot tell the purchase waits, or is refused, and a forged text counts for nothing")
    func unnamed() async throws {
        let listed = try store.transaction()
        let (page, statuses) = (try store.page([listed]), try store.statuses(listed))
        let forged = try ServerStore().transaction("9")
        var request = store.request()
        request.transactionID = "9"
        let table: [(Response, ServerVerdict)] = [
            (
                ServerStore.error(4_040_010),
                .otherSubject("Apple's answer does not hold the transaction that was asked about.")
            ),
            (ServerStore.error(5_000_000), .noAnswer("Apple has a temporary problem (5000000).", code: 5_000_000)),
            (.text("{}"), .noAnswer("Apple's answer cannot be read; ask again later.", code: nil)),
        ]
        for (response, verdict) in table {
            let (answers, _) = try await store.ask(request) {
                $0.path.contains("/transactions/") ? response : .text($0.path.contains("history") ? page : statuses)
            }
            #expect(answers.first?.server == verdict)
        }
        request.signedText = Array(forged.utf8)
        let (answers, _) = try await store.ask(request) { .text($0.path.contains("history") ? page : statuses) }
        guard case .unverified(let sentence)? = answers.first?.server else {
            Issue.record("\(String(describing: answers.first?.server))")
            return
        }
        #expect(sentence.contains("transaction.signedTransactionInfo"))
    }

    @Test("An answer about another app or environment, or without the id at first sight, is refused")
    func otherSubject() async throws {
        let (store, own) = (self.store, try store.transaction())
        let stranger = try store.transaction("1", ["bundleId": "com.example.other"])
        let answersOf: [(String, [String: any Sendable])] = [
            (stranger, [:]), (try store.transaction("1", ["environment": "Sandbox"]), [:]),
            (own, ["bundleId": "com.example.other"]), (own, ["environment": "Sandbox"]), (own, ["appAppleId": 8]),
            (try store.transaction("2", ["originalTransactionId": "2"]), [:]),
        ]
        for (text, more) in answersOf {
            let (answers, _) = try await store.ask {
                try $0.path.contains("/transactions/") ? ServerStore.error(4_040_010) : store.both($0, text, more)
            }
            guard case .otherSubject? = answers.first?.server else {
                Issue.record("\(String(describing: answers.first?.server))")
                continue
            }
        }
        let right = try await store.ask { try store.both($0, own, ["appAppleId": 7]) }
        #expect(right.answers.first?.server?.contents != nil)
        let (empty, none) = (try store.statuses(nil), try store.page([]))
        let later = try await store.ask(store.request(isFirstSight: false)) {
            .text($0.path.contains("subscriptions") ? empty : none)
        }
        #expect(later.answers.first?.server?.contents?.texts == [])
    }
}
