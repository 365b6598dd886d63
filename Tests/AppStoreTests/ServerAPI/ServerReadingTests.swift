import Crypto
import Foundation
import Hummingbird
import Testing

@testable import AppStore

@Suite("A check reads statuses, the news of a history, or all of it")
struct ServerReadingTests {
    private let store: ServerStore

    init() throws { store = try ServerStore() }

    @Test("A request has Apple's path and a token that lives five minutes and began a minute ago")
    func token() async throws {
        let statuses = try store.statuses(try store.transaction())
        let (_, asked) = try await store.ask(times: 2) { _ in .text(statuses) }
        #expect(asked.map(\.target) == Array(repeating: "/inApps/v1/subscriptions/1", count: 2))
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

    @Test("All of a history is read page by page in ascending order, then the statuses; the text is kept")
    func all() async throws {
        let pages = [
            nil: try store.page([try store.transaction("1")], revision: "a+b", hasMore: true),
            "a+b": try store.page([try store.transaction("2"), try store.transaction("3")], revision: "end"),
        ]
        let statuses = try store.statuses(try store.transaction("3"), status: 2)
        let (answers, asked) = try await store.ask(store.request(.all(from: nil))) { asked in
            if asked.path.contains("subscriptions") { return .text(statuses) }
            return .text(pages[asked.target.contains("revision=a%2Bb") ? "a+b" : nil] ?? "")
        }
        #expect(
            asked.map(\.target) == [
                "/inApps/v2/history/1?sort=ASCENDING", "/inApps/v2/history/1?sort=ASCENDING&revision=a%2Bb",
                "/inApps/v1/subscriptions/1",
            ])
        let answer = try #require(answers.first)
        let contents = try #require(answer.server?.contents)
        #expect(answer.calls == 3 && contents.revision == "end" && !contents.goesOn && contents.from == nil)
        #expect(
            contents.transactions?.map(\.path) == [
                "history[0].signedTransactions[0]", "history[1].signedTransactions[0]",
                "history[1].signedTransactions[1]",
            ])
        #expect(contents.statuses?.map(\.status) == [2] && contents.statuses?.first?.originalTransactionID == "1")
        #expect(ServerContents(reading: answer.body) == contents)
    }

    @Test("A long history ends at the limit of pages, and the next check goes on there")
    func limit() async throws {
        let page = try store.page([try store.transaction()], revision: "r", hasMore: true)
        let last = try store.page([try store.transaction("2")], revision: "end")
        let statuses = try store.statuses(try store.transaction())
        let (answers, asked) = try await store.ask(store.request(.all(from: nil)), pagesMax: 1) { asked in
            .text(asked.path.contains("subscriptions") ? statuses : page)
        }
        #expect(answers.first?.server?.contents?.goesOn == true && answers.first?.server?.contents?.revision == "r")
        #expect(asked.count == 2)
        let next = try await store.ask(store.request(.all(from: "r"), isFirstSight: false), pagesMax: 1) { asked in
            .text(asked.path.contains("subscriptions") ? statuses : last)
        }
        #expect(next.answers.first?.server?.contents?.goesOn == false)
        #expect(next.answers.first?.server?.contents?.from == "r")
        #expect(next.asked.first?.target == "/inApps/v2/history/1?sort=ASCENDING&revision=r")
    }

    @Test("No news is one call; news bring the statuses too")
    func news() async throws {
        let none = try store.page([], revision: "r2")
        var (answers, asked) = try await store.ask(store.request(.news(since: "r1"), isFirstSight: false)) { _ in
            .text(none)
        }
        #expect(
            answers.first?.server == .nothingNew(revision: nil) && asked.count == 1 && answers.first?.failure == nil)
        let some = try store.page([try store.transaction()], revision: "r2")
        let statuses = try store.statuses(try store.transaction())
        (answers, asked) = try await store.ask(store.request(.news(since: "r1"), isFirstSight: false)) {
            .text($0.path.contains("subscriptions") ? statuses : some)
        }
        #expect(answers.first?.server?.contents?.texts.count == 2 && asked.count == 2)
    }

    @Test("News that are stored already are one call, and the next read begins after them")
    func storedNews() async throws {
        let some = try store.page([try store.transaction()], revision: "r2")
        let statuses = try store.statuses(try store.transaction())
        var request = store.request(.news(since: "r1"), isFirstSight: false)
        request.isStored = { $0.transactions?.count == 1 && $0.statuses == nil }
        var (answers, asked) = try await store.ask(request) { _ in .text(some) }
        #expect(answers.first?.server == .nothingNew(revision: "r2") && asked.count == 1)
        let unfinished = try store.page([try store.transaction()], revision: "r2", hasMore: true)
        (answers, asked) = try await store.ask(request, pagesMax: 1) {
            .text($0.path.contains("subscriptions") ? statuses : unfinished)
        }
        #expect(answers.first?.server?.contents?.goesOn == true && asked.count == 2)
        let forged = try ServerStore().page([try ServerStore().transaction()], revision: "r2")
        (answers, asked) = try await store.ask(request) { _ in .text(forged) }
        guard case .unverified? = answers.first?.server else {
            Issue.record("\(answers)")
            return
        }
        #expect(asked.count == 1)
    }

    @Test("A revision that Apple lost is dropped once", arguments: [4_000_005, 4_000_014, 4_000_017])
    func lost(_ code: Int) async throws {
        let page = try store.page([try store.transaction()])
        let statuses = try store.statuses(try store.transaction())
        var (answers, asked) = try await store.ask(store.request(.news(since: "old"), isFirstSight: false)) { asked in
            if asked.path.contains("subscriptions") { return .text(statuses) }
            return asked.target.contains("revision") ? ServerStore.error(code) : .text(page)
        }
        #expect(answers.first?.server?.contents?.from == nil && answers.first?.server?.contents?.revision == "r1")
        #expect(asked.count == 3)
        (answers, asked) = try await store.ask(store.request(.news(since: "old"))) { _ in ServerStore.error(code) }
        #expect(answers.first?.server == .ourFault(code: code) && asked.count == 2)
    }

    @Test("A customer without subscriptions has a history alone")
    func purchases() async throws {
        let page = try store.page([try store.transaction()])
        let (answers, _) = try await store.ask(store.request(.all(from: nil))) {
            $0.path.contains("subscriptions") ? ServerStore.error(4_040_010) : .text(page)
        }
        let contents = try #require(answers.first?.server?.contents)
        #expect(contents.statuses == nil && contents.transactions?.count == 1)
    }

    @Test(
        "Where there are no subscriptions, a check of statuses reads what the history has new",
        arguments: [true, false])
    func statusesOfPurchases(isKnown: Bool) async throws {
        let page = try store.page([], revision: "r2")
        let none = try store.statuses(nil)
        let (answers, asked) = try await store.ask(store.request(.statuses(since: "r1"), isFirstSight: false)) {
            guard $0.path.contains("subscriptions") else { return .text(page) }
            return isKnown ? .text(none) : ServerStore.error(4_040_010)
        }
        let contents = try #require(answers.first?.server?.contents)
        #expect(contents.confirms && contents.revision == "r2" && contents.statuses?.count == (isKnown ? 0 : nil))
        #expect(asked.map { $0.path.contains("history") } == [false, true] && asked[1].target.contains("revision=r1"))
    }

    @Test("A call waits for its turn, and is not made when the turn comes too late")
    func turns() async throws {
        let statuses = try store.statuses(try store.transaction())
        var request = store.request()
        request.turn = { _ in 3_600 }
        let (answers, asked) = try await store.ask(request) { _ in .text(statuses) }
        #expect(
            answers.first?.server == .noAnswer("The app's budget of calls to the Server API is used up.", code: nil))
        #expect(asked.isEmpty && answers.first?.calls == 0)
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
