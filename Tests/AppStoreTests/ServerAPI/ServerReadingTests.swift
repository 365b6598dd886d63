import Crypto
import Foundation
import Hummingbird
import Subscriptions
import Testing

@testable import AppStore

@Suite("A check reads the statuses, then the history from where it was read")
struct ServerReadingTests {
    private let store: ServerStore

    init() throws { store = try ServerStore() }

    @Test("A request has Apple's path and a token that lives five minutes and began a minute ago")
    func token() async throws {
        let (store, text) = (self.store, try store.transaction())
        let (_, asked) = try await store.ask(times: 2) { try store.both($0, text) }
        let check = ["/inApps/v1/subscriptions/1", "/inApps/v2/history/1?sort=ASCENDING"]
        #expect(asked.map(\.target) == check + check)
        #expect(Set(asked.compactMap(\.authorization)).count == 1, "a token is used until shortly before its end")
        let parts = try #require(asked.first?.authorization).dropFirst("Bearer ".count).split(separator: ".")
        let decoded = parts.compactMap { Base64URL.decoded(Array($0.utf8)) }
        let header = try #require(try JSONSerialization.jsonObject(with: Data(decoded[0])) as? [String: String])
        #expect(header == ["alg": "ES256", "kid": "K1", "typ": "JWT"])
        let claims = try #require(try JSONSerialization.jsonObject(with: Data(decoded[1])) as? [String: Any])
        let (from, until) = (try #require(claims["iat"] as? Int), try #require(claims["exp"] as? Int))
        #expect(claims["iss"] as? String == "issuer" && claims["aud"] as? String == "appstoreconnect-v1")
        #expect(claims["bid"] as? String == ServerStore.bundleID && until - from == 360)
        #expect(abs(Date().timeIntervalSince1970 - 60 - Double(from)) < 30)
        let signature = try P256.Signing.ECDSASignature(rawRepresentation: decoded[2])
        let signed = Data("\(parts[0]).\(parts[1])".utf8)
        #expect(store.key.publicKey.isValidSignature(signature, for: signed))
    }

    @Test("The statuses are read first, then all of a history page by page in ascending order; the text is kept")
    func all() async throws {
        let pages = [
            nil: try store.page([try store.transaction("1")], revision: "a+b", hasMore: true),
            "a+b": try store.page([try store.transaction("2"), try store.transaction("3")], revision: "end"),
        ]
        let statuses = try store.statuses(try store.transaction("3"), status: 2)
        let (answers, asked) = try await store.ask { asked in
            if asked.path.contains("subscriptions") { return .text(statuses) }
            return .text(pages[asked.target.contains("revision=a%2Bb") ? "a+b" : nil] ?? "")
        }
        #expect(
            asked.map(\.target) == [
                "/inApps/v1/subscriptions/1", "/inApps/v2/history/1?sort=ASCENDING",
                "/inApps/v2/history/1?sort=ASCENDING&revision=a%2Bb",
            ])
        let answer = try #require(answers.first)
        let contents = try #require(answer.server?.contents)
        #expect(answer.calls == 3 && contents.revision == "end" && !contents.goesOn && contents.from == nil)
        #expect(
            contents.transactions?.map(\.path) == [
                "history[0].signedTransactions[0]", "history[1].signedTransactions[0]",
                "history[1].signedTransactions[1]",
            ])
        #expect(contents.statuses?.map(\.status) == [2])
        #expect(contents.statuses?.first?.transaction?.transaction?.row.originalTransactionID == "1")
        #expect(ServerContents(reading: answer.body) == contents)
    }

    @Test("A long history ends at the limit of pages, and the next check goes on there")
    func limit() async throws {
        let page = try store.page([try store.transaction()], revision: "r", hasMore: true)
        let last = try store.page([try store.transaction("2")], revision: "end")
        let statuses = try store.statuses(try store.transaction())
        let (answers, asked) = try await store.ask(pagesMax: 1) { asked in
            .text(asked.path.contains("subscriptions") ? statuses : page)
        }
        #expect(answers.first?.server?.contents?.goesOn == true && answers.first?.server?.contents?.revision == "r")
        #expect(asked.count == 2)
        let next = try await store.ask(store.request(from: "r", isFirstSight: false), pagesMax: 1) { asked in
            .text(asked.path.contains("subscriptions") ? statuses : last)
        }
        #expect(next.answers.first?.server?.contents?.goesOn == false)
        #expect(next.answers.first?.server?.contents?.from == "r")
        #expect(next.asked.last?.target == "/inApps/v2/history/1?sort=ASCENDING&revision=r")
    }

    @Test("An answer without one of both halves is none", arguments: ["subscriptions", "history"])
    func half(_ failing: String) async throws {
        let (store, text) = (self.store, try store.transaction())
        let (answers, _) = try await store.ask(store.request(from: "r", isFirstSight: false)) {
            try $0.path.contains(failing) ? ServerStore.error(5_000_001) : store.both($0, text)
        }
        #expect(answers.first?.server == .noAnswer("Apple has a temporary problem (5000001).", code: 5_000_001))
        #expect(answers.first?.lastEndpoint == (failing == "history" ? .history : .statuses))
    }

    @Test("A revision that Apple lost is dropped once", arguments: [4_000_005, 4_000_014, 4_000_017])
    func lost(_ code: Int) async throws {
        let page = try store.page([try store.transaction()])
        let statuses = try store.statuses(try store.transaction())
        var (answers, asked) = try await store.ask(store.request(from: "old", isFirstSight: false)) { asked in
            if asked.path.contains("subscriptions") { return .text(statuses) }
            return asked.target.contains("revision") ? ServerStore.error(code) : .text(page)
        }
        #expect(answers.first?.server?.contents?.from == nil && answers.first?.server?.contents?.revision == "r1")
        #expect(asked.count == 3)
        (answers, asked) = try await store.ask(store.request(from: "old")) { asked in
            asked.path.contains("subscriptions") ? .text(statuses) : ServerStore.error(code)
        }
        #expect(answers.first?.server == .ourFault(code: code) && asked.count == 3)
    }

    @Test("A customer without subscriptions has a history alone", arguments: [true, false])
    func purchases(isKnown: Bool) async throws {
        let page = try store.page([try store.transaction()])
        let none = try store.statuses(nil)
        let (answers, _) = try await store.ask {
            guard $0.path.contains("subscriptions") else { return .text(page) }
            return isKnown ? .text(none) : ServerStore.error(4_040_010)
        }
        let contents = try #require(answers.first?.server?.contents)
        #expect(contents.statuses?.count == (isKnown ? 0 : nil) && contents.transactions?.count == 1)
    }

    @Test("Both calls are reserved before the first one, and none is made when a turn comes too late")
    func turns() async throws {
        let (store, text) = (self.store, try store.transaction())
        for late in [ServerEndpoint.statuses, .history] {
            var request = store.request()
            request.turn = { _, endpoint in endpoint == late ? 3_600 : nil }
            let (answers, asked) = try await store.ask(request) { try store.both($0, text) }
            #expect(
                answers.first?.server == .noAnswer("The app's budget of calls to the Server API is used up.", code: nil)
            )
            #expect(asked.isEmpty && answers.first?.calls == 0)
        }
    }

    @Test("A key never shows itself")
    func quiet() {
        let key = store.request().key
        var dumped = ""
        dump(key, to: &dumped)
        for text in ["\(key)", String(reflecting: key), dumped, "\(store.request())"] {
            #expect(!text.contains("PRIVATE"))
        }
    }
}
