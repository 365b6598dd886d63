import Foundation
import HTTPTypes
import Hummingbird
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
        var (answers, asked) = try await store.ask(store.request(.all(from: nil))) {
            guard $0.path.hasPrefix("/sandbox") else { return ServerStore.error(code) }
            return .text($0.path.contains("subscriptions") ? statuses : page)
        }
        #expect(answers.first?.environment == .sandbox && answers.first?.server?.contents?.texts.count == 2)
        #expect(
            asked.map(\.path) == [
                "/inApps/v2/history/1", "/sandbox/inApps/v2/history/1", "/sandbox/inApps/v1/subscriptions/1",
            ])
        for code in [4_040_010, 4_040_005, 4_040_001] {
            (answers, asked) = try await store.ask(store.request(.all(from: nil))) {
                ServerStore.error($0.path.hasPrefix("/sandbox") ? code : 4_040_010)
            }
            #expect(answers.first?.server == .unknownTransaction(code: code) && asked.count == 2)
        }
        for request in [
            store.request(.all(from: nil), isFirstSight: false),
            store.request(.all(from: nil), sandboxAllowed: false),
        ] {
            (answers, asked) = try await store.ask(request) { _ in ServerStore.error(code) }
            #expect(answers.first?.server == .unknownTransaction(code: code) && asked.count == 1)
        }
    }

    @Test("A refused token is renewed once; then it is the key's fault, unless the app lives in the sandbox alone")
    func unauthorized() async throws {
        let store = self.store
        var (answers, asked) = try await store.ask(store.request(isFirstSight: false)) { _ in .text("", .unauthorized) }
        #expect(answers.first?.server == .keyRefused && asked.count == 2 && answers.first?.calls == 2)
        #expect(Set(asked.compactMap(\.authorization)).count == 2)
        let statuses = try store.statuses(
            try store.transaction("1", ["environment": "Sandbox"]), ["environment": "Sandbox"])
        (answers, asked) = try await store.ask {
            $0.path.hasPrefix("/sandbox") ? .text(statuses) : .text("", .unauthorized)
        }
        #expect(answers.first?.environment == .sandbox && answers.first?.server?.contents != nil && asked.count == 3)
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
            let statuses = try store.statuses(text)
            let (answers, _) = try await store.ask { _ in .text(statuses) }
            guard case .unverified(let sentence)? = answers.first?.server else {
                Issue.record("\(String(describing: answers.first?.server))")
                continue
            }
            #expect(sentence.contains("statuses.data[0].lastTransactions[0].signedTransactionInfo"))
            #expect(answers.first?.body == [])
        }
    }

    @Test("An answer about another app or environment, or without the id at first sight, is refused")
    func otherSubject() async throws {
        let own = try store.transaction()
        let bodies = [
            try store.statuses(try store.transaction("1", ["bundleId": "com.example.other"])),
            try store.statuses(try store.transaction("1", ["environment": "Sandbox"])),
            try store.statuses(own, ["bundleId": "com.example.other"]),
            try store.statuses(own, ["environment": "Sandbox"]), try store.statuses(own, ["appAppleId": 8]),
            try store.statuses(try store.transaction("2", ["originalTransactionId": "2"])), try store.statuses(nil),
        ]
        for body in bodies {
            let (answers, _) = try await store.ask { _ in .text(body) }
            guard case .otherSubject? = answers.first?.server else {
                Issue.record("\(String(describing: answers.first?.server))")
                continue
            }
        }
        let right = try store.statuses(own, ["appAppleId": 7])
        #expect(try await store.ask { _ in .text(right) }.answers.first?.server?.contents != nil)
        let empty = try store.statuses(nil)
        let later = try await store.ask(store.request(isFirstSight: false)) { _ in .text(empty) }
        #expect(later.answers.first?.server?.contents?.texts == [])
    }
}
