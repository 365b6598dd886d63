import AppStore
import AsyncHTTPClient
import Hummingbird
import Testing

@Suite("A failed call throws nothing: it gives no response, and a sentence that says why") struct LiveTroubleTests {
    static let request = AppStoreRequest(receipt: "AAAA", secret: "hush-current", previousSecret: "hush-previous")

    func expectTrouble(
        _ words: String, http: Int?, bytes: Int = 0, calls: Int = 1,
        change: @escaping @Sendable (inout AppStoreOptions) -> Void = { _ in },
        _ script: @escaping @Sendable (Asked) async throws -> Response
    ) async throws {
        let store = ScriptedHTTPStore()
        try await store.serving(script) { local in
            var options = local
            change(&options)
            let answer = try await store.verify(Self.request, options)
            let failure = try #require(answer.failure)
            #expect(failure.contains(words), "\(failure)")
            #expect(answer.response == nil && answer.httpStatus == http && answer.calls == calls)
            #expect(answer.body.count == bytes, "\(failure)")
            #expect(!failure.contains("hush") && !store.notes.joined().contains("hush"))
            #expect(failure.hasSuffix("."))
        }
    }

    @Test("Errors of HTTP are no answer")
    func httpErrors() async throws {
        try await expectTrouble("HTTP 500 with a text", http: 500, bytes: 5) { _ in .text("oops!", .internalServerError)
        }
        try await expectTrouble("HTTP 503 with a web page", http: 503, bytes: 6) { _ in
            .text("<html>", .serviceUnavailable)
        }
        try await expectTrouble("HTTP 502 with a JSON object", http: 502, bytes: 12) { _ in
            .text(#"{"status":0}"#, .badGateway)
        }
        try await expectTrouble("too many requests", http: 429) { _ in .text("", .tooManyRequests) }
        try await expectTrouble("check the configured address", http: 404) { _ in .text("", .notFound) }
    }

    @Test("Bodies of another kind are no answer")
    func bodiesThatAreNoAnswer() async throws {
        try await expectTrouble("HTTP 200 with a web page", http: 200, bytes: 6) { _ in .text("<html>") }
        try await expectTrouble("HTTP 200 with an empty body", http: 200) { _ in .text("") }
        try await expectTrouble("ends in the middle", http: 200, bytes: 11) { _ in .text(#"{"status":0"#) }
        try await expectTrouble("not JSON", http: 200, bytes: 12) { _ in .text("hush-current") }
    }

    @Test("An answer larger than the limit is no answer")
    func anAnswerLargerThanTheLimit() async throws {
        let large = String(repeating: " ", count: 4096)
        try await expectTrouble(
            "larger than the limit of 1000 bytes", http: 200, change: { $0.responseBytesMax = 1000 }
        ) {
            _ in .text(large)
        }
        try await expectTrouble(
            "larger than the limit of 1000 bytes", http: 200, change: { $0.responseBytesMax = 1000 }
        ) {
            _ in
            Response(
                status: .ok,
                body: .init { writer in
                    for _ in 0..<4 { try await writer.write(ByteBuffer(string: String(repeating: " ", count: 500))) }
                    try await writer.finish(nil)
                })
        }
    }

    @Test("A transfer that breaks off is no answer")
    func aTransferThatBreaksOff() async throws {
        struct Cut: Error {}
        try await expectTrouble("broke off after 8 bytes.", http: 200, bytes: 8) { _ in
            Response(
                status: .ok,
                body: .init(contentLength: 100) { writer in
                    try await writer.write(ByteBuffer(string: #"{"status"#))
                    throw Cut()
                })
        }
    }

    @Test("A store that hangs is not waited for")
    func aStoreThatHangs() async throws {
        try await expectTrouble("did not answer in time", http: nil, change: { $0.deadline = .milliseconds(300) }) {
            _ in
            try await Task.sleep(for: .seconds(60))
            return .text("")
        }
        try await expectTrouble("did not answer in time", http: 200, change: { $0.deadline = .milliseconds(500) }) {
            _ in
            Response(
                status: .ok,
                body: .init(contentLength: 100) { writer in
                    try await writer.write(ByteBuffer(string: "{"))
                    try await Task.sleep(for: .seconds(60))
                })
        }
    }

    /// The deadline is for all calls together: the second one gets what the first left.
    @Test("A store that hangs on the second call is not waited for")
    func aStoreThatHangsOnTheSecondCall() async throws {
        try await expectTrouble("in time", http: nil, calls: 2, change: { $0.deadline = .milliseconds(500) }) { asked in
            if asked.isSandbox { try await Task.sleep(for: .seconds(60)) }
            return .text(#"{"status":21007}"#)
        }
    }

    @Test("A receipt larger than the limit is not sent")
    func aReceiptLargerThanTheLimitIsNotSent() async throws {
        try await expectTrouble("was not sent", http: nil, calls: 0, change: { $0.requestBytesMax = 3 }) { _ in
            .text(#"{"status":0}"#)
        }
    }

    @Test("An address where nothing listens is no answer")
    func nobodyListens() async throws {
        let store = ScriptedHTTPStore()
        let gone = Gone()
        try await store.serving { _ in
            .text("")
        } _: { options in
            await gone.remember(options)
        }
        var options = try #require(await gone.options)
        options.connectTimeout = .milliseconds(300)
        let answer = try await store.verify(Self.request, options)
        #expect(answer.httpStatus == nil && answer.response == nil && answer.body.isEmpty && answer.calls == 1)
        let failure = try #require(answer.failure)
        #expect(
            ["The store could not be reached.", "No connection to the store could be made in time."].contains(failure))
        // What the network calls it is for the log.
        #expect(answer.failureDetail != nil || failure.contains("in time"), "\(answer)")
        #expect(answer.failureInFull?.hasPrefix(failure) == true)
        #expect(store.asked.isEmpty)
    }

    @Test("A store that speaks no TLS is no answer")
    func aStoreThatSpeaksNoTLS() async throws {
        let store = ScriptedHTTPStore()
        try await store.serving { _ in
            .text(#"{"status":0}"#)
        } _: { local in
            var options = local
            options.productionURL = local.productionURL.replacing("http://", with: "https://")
            options.connectTimeout = .seconds(2)
            let answer = try await store.verify(Self.request, options)
            #expect(answer.httpStatus == nil && answer.response == nil)
            let failure = try #require(answer.failure)
            #expect(failure.hasPrefix("The TLS handshake with the store failed; check that the configured address"))
            #expect(answer.failureDetail != nil)
        }
    }

    @Test("An address that is none is no answer")
    func anAddressThatIsNone() async throws {
        let store = ScriptedHTTPStore()
        for url in ["", "not a url", "ftp://127.0.0.1/x", "http://"] {
            let answer = try await store.verify(Self.request, AppStoreOptions(productionURL: url))
            #expect(answer.failure != nil && answer.httpStatus == nil, "\(url)")
        }
    }

    @Test("A cancelled check ends")
    func aCancelledCheckEnds() async throws {
        let store = ScriptedHTTPStore()
        let (questions, question) = AsyncStream<Void>.makeStream()
        try await store.serving { _ in
            question.yield()
            try await Task.sleep(for: .seconds(60))
            return .text("")
        } _: { options in
            let answer = try await withThrowingTaskGroup(of: AppStoreAnswer.self) { group in
                group.addTask { try await store.verify(Self.request, options) }
                for await _ in questions { break }
                group.cancelAll()
                return try await group.next()
            }
            #expect(answer?.failure?.contains("cancelled") == true, "\(answer?.failure ?? "no failure")")
        }
    }
}

/// Remembers where a server stood after it is gone.
private actor Gone {
    private(set) var options: AppStoreOptions?

    func remember(_ options: AppStoreOptions) {
        self.options = options
    }
}
