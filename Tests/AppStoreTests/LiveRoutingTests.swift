import AppStore
import AsyncHTTPClient
import HTTPTypes
import Hummingbird
import Subscriptions
import Testing

@Suite("Calls go to the right store") struct LiveRoutingTests {
    @Test("A request is as Apple expects it")
    func asksAsAppleExpects() async throws {
        let store = ScriptedHTTPStore()
        try await store.serving { _ in
            .text(#"{"status":0,"environment":"Production"}"#, .ok, [.setCookie: "itspod=1"])
        } _: { options in
            let answer = try await store.verify(AppStoreRequest(receipt: "AA+/", secret: #"a"\b"#), options)
            #expect(answer.httpStatus == 200 && answer.failure == nil && answer.calls == 1)
            #expect(answer.environment == .production && answer.response?.status == 0 && !answer.usedPreviousSecret)
            #expect(answer.body == Array(#"{"status":0,"environment":"Production"}"#.utf8))
            let bare = try await store.verify(AppStoreRequest(receipt: "AA+/"), options)
            #expect(bare.response?.status == 0)
        }
        #expect(store.asked.map(\.receipt) == ["AA+/", "AA+/"])
        #expect(store.asked.map(\.password) == [#"a"\b"#, nil])
        #expect(store.asked.map(\.excludesOld) == [false, false])
        #expect(store.asked.last?.body == #"{"receipt-data":"AA+/","exclude-old-transactions":false}"#)
        #expect(store.asked.allSatisfy { $0.contentType == "application/json" && !$0.hasCookie })
    }

    @Test("A check switches the store at most once each way")
    func switchesStoreOnceEachWayAtMost() async throws {
        for (askFirst, production, sandbox, allowed, path, final) in [
            (.production, 21007, 0, true, ["/production", "/sandbox"], 0),
            (.sandbox, 0, 21008, true, ["/sandbox", "/production"], 0),
            (.production, 21007, 21008, true, ["/production", "/sandbox"], 21008),
            (.sandbox, 21007, 21008, true, ["/sandbox", "/production"], 21007),
            (.production, 21007, 0, false, ["/production"], 21007),
            (.sandbox, 21007, 0, false, ["/production"], 21007),
        ] as [(StoreEnvironment, Int, Int, Bool, [String], Int)] {
            let store = ScriptedHTTPStore()
            try await store.serving { asked in
                .text(#"{"status":\#(asked.isSandbox ? sandbox : production)}"#)
            } _: { options in
                let request = AppStoreRequest(receipt: "AAAA", askFirst: askFirst, sandboxAllowed: allowed)
                let answer = try await store.verify(request, options)
                #expect(answer.response?.status == final && answer.calls == path.count)
                #expect(answer.environment == (path.last == "/sandbox" ? .sandbox : .production))
            }
            #expect(store.asked.map(\.path) == path)
        }
    }

    @Test("An outage after the switch is an outage of the sandbox")
    func anOutageAfterTheSwitchIsTheSandboxesOutage() async throws {
        let store = ScriptedHTTPStore()
        try await store.serving { asked in
            asked.isSandbox ? .text("", .serviceUnavailable) : .text(#"{"status":21007}"#)
        } _: { options in
            let answer = try await store.verify(AppStoreRequest(receipt: "AAAA"), options)
            #expect(answer.environment == .sandbox && answer.httpStatus == 503 && answer.response == nil)
            #expect(answer.calls == 2 && answer.failure?.contains("503 with an empty body") == true)
        }
    }

    @Test("The previous secret is tried once")
    func triesThePreviousSecretOnce() async throws {
        for (right, statuses, passwords) in [
            ("new", 0, ["new"]), ("old", 0, ["new", "old"]), ("other", 21004, ["new", "old"]),
        ] {
            let store = ScriptedHTTPStore()
            try await store.serving { asked in
                .text(#"{"status":\#(asked.password == right ? 0 : 21004)}"#)
            } _: { options in
                let request = AppStoreRequest(receipt: "AAAA", secret: "new", previousSecret: "old")
                let answer = try await store.verify(request, options)
                #expect(answer.response?.status == statuses && answer.usedPreviousSecret == (passwords.count == 2))
                #expect(answer.calls == passwords.count)
            }
            #expect(store.asked.map(\.password) == passwords)
        }
    }

    @Test("Announcements are noted once and secrets never")
    func announcementsAreNotedOnceAndSecretsNever() async throws {
        let store = ScriptedHTTPStore()
        let sunset = try #require(HTTPField.Name("sunset"))
        let deprecation = try #require(HTTPField.Name("deprecation"))
        try await store.serving { _ in
            .text(
                #"{"status":21007}"#, .ok,
                [sunset: "Sat, 31 Dec 2028 23:59:59 GMT", deprecation: "echo of hush-current"])
        } _: { options in
            let request = AppStoreRequest(receipt: "AAAA", secret: "hush-current", previousSecret: "hush-previous")
            let answer = try await store.verify(request, options)
            #expect(answer.calls == 2)
        }
        #expect(store.notes.count == 2)
        #expect(store.notes.contains { $0.contains("Sunset: Sat, 31 Dec 2028 23:59:59 GMT") })
        #expect(store.notes.allSatisfy { !$0.contains("hush") })
    }

    @Test("Redirects are not followed")
    func redirectsAreNotFollowed() async throws {
        for followed in [false, true] {
            let store = ScriptedHTTPStore()
            try await store.serving { asked in
                asked.path == "/elsewhere"
                    ? .text(#"{"status":0}"#) : .text("", .temporaryRedirect, [.location: "/elsewhere"])
            } _: { options in
                let answer = try await store.verify(AppStoreRequest(receipt: "AAAA"), options) {
                    if followed { $0.redirectConfiguration = .follow(max: 3, allowCycles: false) }
                }
                #expect(answer.response == nil && answer.failure?.contains("redirect") == true)
                #expect(answer.httpStatus == (followed ? 200 : 307))
            }
            #expect(store.asked.map(\.path) == (followed ? ["/production", "/elsewhere"] : ["/production"]))
        }
    }
}
