import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
import SeededRandom
import Synchronization
import TestSupport
import Testing

@testable import Tracking

/// The folder of the sources.
private let repository = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent()

/// The Python of `scripts/test --all`, which has `standardwebhooks` and `jsonschema`.
private let pythonProgram = ProcessInfo.processInfo.environment["PERENNIAL_TEST_PYTHON"]

@Suite("A call is signed as Standard Webhooks has it, and no receiver does harm")
struct WebhookCallTests {
    @Test("The published example has the published signature")
    func vector() throws {
        let call = WebhookCall(
            url: "https://a/", id: "msg_p5jXN8AQM9LWM0D4loKWxJek", body: Array(#"{"test": 2432232314}"#.utf8),
            secrets: [try WebhookSecret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")])
        #expect(call.signature(at: 1_614_265_330) == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")
    }

    @Test(
        "The library standardwebhooks accepts each message with both secrets, and so does the schema",
        .enabled(if: pythonProgram != nil, "scripts/test --all runs it"))
    func library() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "webhooks-\(UUID())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let calls = try await messages()
        let secrets = [WebhookSecret(), WebhookSecret()]
        let now = Int(Date().timeIntervalSince1970)
        let lines = try calls.enumerated().map { number, call in
            let signed = WebhookCall(url: call.url, id: call.id, body: call.body, secrets: secrets)
            let line = [
                "secret": secrets[number % 2].text, "body": String(decoding: call.body, as: UTF8.self), "id": call.id,
                "at": "\(now)", "signature": signed.signature(at: now),
            ]
            return String(decoding: try JSONEncoder().encode(line), as: UTF8.self)
        }
        let file = folder.appending(path: "messages.ndjson")
        try (lines.joined(separator: "\n") + "\n").write(to: file, atomically: true, encoding: .utf8)
        let script = """
            import json, sys
            from jsonschema import Draft202012Validator
            from standardwebhooks import Webhook
            schema = Draft202012Validator(json.load(open(sys.argv[1])))
            for line in open(sys.argv[2]):
                call = json.loads(line)
                message = Webhook(call["secret"]).verify(call["body"].encode(), {
                    "webhook-id": call["id"], "webhook-timestamp": call["at"], "webhook-signature": call["signature"]})
                schema.validate(message)
                print(message["type"])
            """
        let schema = repository.appending(path: "docs/webhook-message.schema.json").path
        let checked = try await runPython(["-c", script, schema, file.path])
        #expect(checked.status == 0, "\(checked.output)")
        let accepted = checked.output.split(separator: "\n")
        #expect(accepted.count == calls.count && Set(accepted).count > 3, "\(checked.output)")
        try await receive(in: folder)
    }

    /// The messages about some random changes.
    private func messages() async throws -> [WebhookCall] {
        try await withLedger(connections: 4) { test in
            var random = Seeded(seed: 3)
            try await test.live(80, &random)
            let id = try await test.addWebhook()
            let receiver = PretendReceiver()
            let calls = Mutex<[WebhookCall]>([])
            receiver.watch { call in calls.withLock { $0.append(call) } }
            try await test.runOwner(receiver) { try await test.isIdle(id) }
            return calls.withLock { $0 }
        }
    }

    /// Starts the receiver of the documents, and expects that it keeps only what is newer.
    private func receive(in folder: URL) async throws {
        let secret = WebhookSecret()
        try secret.text.write(to: folder.appending(path: "secret"), atomically: true, encoding: .utf8)
        let port = Int.random(in: 20_000...30_000)
        let script = repository.appending(path: "docs/examples/receive.py").path
        let process = Process()
        process.executableURL = URL(filePath: pythonProgram ?? "python3")
        process.arguments = [script]
        process.environment = ProcessInfo.processInfo.environment.merging([
            "WEBHOOK_SECRET_FILE": folder.appending(path: "secret").path,
            "MIRROR": folder.appending(path: "mirror.db").path, "PORT": "\(port)",
        ]) { $1 }
        try process.run()
        // A child of a test has SIGTERM blocked.
        defer { kill(process.processIdentifier, SIGKILL) }
        try await expectNewest(from: process, at: port, secret, by: try .live())
    }

    private func expectNewest(
        from process: Process, at port: Int, _ secret: WebhookSecret, by sender: WebhookSender
    ) async throws {
        func stretch(_ name: String, _ environment: String = "Production", until: String = "9999") -> String {
            #"{"entitlement":"\#(name)","environment":"\#(environment)","from":null,"until":"\#(until)-01-01T00:00:00.000Z"}"#
        }
        func send(
            _ position: Int, _ access: String..., of customer: String = "ann", since: Int = 2026,
            signedBy other: WebhookSecret? = nil
        ) async -> WebhookOutcome {
            let body = """
                {"type":"subscription.renewed","data":{"event":{"app":"a"},"customer":"\(customer)",
                 "access":\(access == ["null"] ? "null" : "[\(access.joined(separator: ","))]"),
                 "position":\(position),"feed_since":"\(since)-01-01T00:00:00.000Z"}}
                """
            return await sender.send(
                WebhookCall(
                    url: "http://127.0.0.1:\(port)/", id: "msg_\(position)", body: Array(body.utf8),
                    secrets: [other ?? secret]))
        }
        func expectMirror(_ customers: String...) async throws {
            let answer = try await HTTPClient.shared.execute(
                HTTPClientRequest(url: "http://127.0.0.1:\(port)/"), timeout: .seconds(10))
            let mirror = String(buffer: try await answer.body.collect(upTo: 1 << 20))
            #expect(mirror == "[\(customers.map { #"{"app": "a", "customer": \#($0)}"# }.joined(separator: ", "))]")
        }
        while process.isRunning, await send(1, stretch("one")) != .delivered {
            try await Task.sleep(for: .milliseconds(100))
        }
        let newest = [stretch("new"), stretch("new", "Sandbox"), stretch("test", "Sandbox")]
        #expect(await send(9, newest[0], newest[1], newest[2], stretch("over", until: "2026")) == .delivered)
        #expect(await send(5, stretch("old")) == .delivered)
        guard case .failed(let failure) = await send(10, stretch("false"), signedBy: WebhookSecret()) else {
            Issue.record("a wrong signature was taken")
            return
        }
        #expect(failure.status == 400)
        let ann = #"{"test": "Sandbox", "new": "Production"}"#
        try await expectMirror(#""ann", "confirmed": true, "entitlements": \#(ann)"#)
        // Too many for a message: what came before is no answer any more.
        #expect(await send(10, stretch("few"), of: "bob") == .delivered)
        #expect(await send(11, "null", of: "bob") == .delivered)
        try await expectMirror(
            #""ann", "confirmed": true, "entitlements": \#(ann)"#,
            #""bob", "confirmed": true, "entitlements": null"#)
        // After a restore: ann was confirmed, and only the lost data knew bob.
        #expect(await send(2, stretch("new"), since: 2027) == .delivered)
        let confirmed = #""ann", "confirmed": true, "entitlements": {"new": "Production"}"#
        try await expectMirror(confirmed, #""bob", "confirmed": false, "entitlements": null"#)
        let guide = try String(contentsOf: repository.appending(path: "docs/webhooks.md"), encoding: .utf8)
        let statement = try #require(guide.firstMatch(of: /`(DELETE FROM customer [^`]*)`/)?.output.1)
        let file = process.environment?["MIRROR"] ?? ""
        let dropped = try await runPython([
            "-c", "import sqlite3, sys; m = sqlite3.connect(sys.argv[1]); m.execute(sys.argv[2]); m.commit()", file,
            String(statement),
        ])
        #expect(dropped.status == 0, "\(dropped.output)")
        try await expectMirror(confirmed)
    }

    @Test("URLs in every disguise are judged by where they lead")
    func addresses() {
        let refused = [
            "", "ftp://example.com/", "http://", "https:///a", "https://user@example.com/", "https://a:b@example.com/",
            "https://example.com/#x", "https://example.com:0/", "https://example.com:70000/", "https://exa mple.com/",
            "https://éxample.com/", "https://example.com\\@evil/", "http://example.com@169.254.169.254/",
            "https://169.254.169.254/", "https://169.254.1.1/", "https://0.0.0.0/", "https://224.0.0.1/",
            "https://255.255.255.255/", "https://168.63.129.16/", "https://100.100.100.200/", "https://2852039166/",
            "https://0xa9fea9fe/", "https://0251.0376.0251.0376/", "https://169.254.43518/", "https://127.1/",
            "https://[::]/", "https://[fe80::1]/", "https://[ff02::1]/", "https://[fd00:ec2::254]/",
            "https://[fd20:ce::254]/",
            "https://[::ffff:169.254.169.254]/", "https://[::ffff:a9fe:a9fe]/", "https://[64:ff9b::a9fe:a9fe]/",
            "https://[2002:a9fe:a9fe::]/", "https://[::169.254.169.254]/", "https://[::ffff:0:169.254.169.254]/",
            "https://[64:ff9b:1::a9fe:a9fe]/", "https://[2001:0:1::1]/", "https://[2001:db8::5efe:169.254.169.254]/",
            "https://0.1.2.3/", "https://[::0.1.2.3]/", "https://192.0.0.192/", "https://169.254.169.254./",
            "https://[::0.0.0.2]/",
            "http://8.8.8.8/", "http://[2001:4860:4860::8888]/",
            "https://example.com/" + String(repeating: "a", count: 2_000),
        ]
        for url in refused { #expect(throws: LedgerError.self, "\(url)") { try WebhookAddress(url) } }
        let allowed = [
            "https://example.com/", "https://example.com:8443/hook?token=1", "http://receiver:9000/",
            "https://8.8.8.8/",
            "http://127.0.0.1:9/", "http://10.0.0.7/", "http://172.16.1.1/", "http://192.168.1.1/",
            "http://[::1]:9000/",
            "http://[fd12::1]/", "http://100.64.0.1/", "http://[fec0::1]/", "https://[2001:4860:4860::8888]/",
            "http://[::ffff:10.0.0.1]/", "HTTPS://EXAMPLE.COM/",
        ]
        for url in allowed { #expect(throws: Never.self, "\(url)") { try WebhookAddress(url) } }
    }

    @Test("Every bad receiver is a failure with a sentence, and 2xx counts as soon as it is read")
    func badReceivers() async throws {
        let cases: [(answer: BadReceiver.Answer, expected: String)] = [
            (.text("HTTP/1.1 204 No Content\r\n\r\n"), "delivered"),
            (.text("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbroken"), "delivered"),
            (.text("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"), "delivered"),
            (.endless("HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\n"), "delivered"),
            (.endless("HTTP/1.1 500 Internal Server Error\r\nContent-Length: 1073741824\r\n\r\n"), "It answered 500."),
            (.text("HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1/\r\nContent-Length: 0\r\n\r\n"), "redirect"),
            (.text("HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n"), "gone"),
            (.text("HTTP/1.1 503 Busy\r\nRetry-After: 9999999\r\nContent-Length: 0\r\n\r\n"), "It answered 503."),
            (.text("no HTTP at all\r\n\r\n"), "no HTTP"),
            (.text("HTTP/1.1 99 No\r\n\r\n"), "no HTTP"),
            (.reset, "closed the connection"),
            (.silence, "within 15 seconds"),
            (.drip("HTTP/1.1 200 OK\r\n"), "delivered"),
            (.drip("HTTP/1.1 200 "), "delivered"),
            (.drip("HTTP/1.1 200"), "no HTTP"),
            (.drip("HTTP/1.1 500 Internal Server Error\r\n"), "It answered 500."),
            (.endless("HTTP/1.1 204 "), "delivered"),
            (.endless("HTTP/1.1 500 "), "It answered 500."),
            (.endless("HTTP/1.1 503 Busy\r\nX: "), "It answered 503."),
            (.endless("HTTP/1.1 103 "), "closed the connection"),
            (.endless(""), "no HTTP"),
        ]
        let sender = try WebhookSender.live(callSeconds: 6)
        let results = try await withThrowingTaskGroup(of: (Int, WebhookOutcome).self) { group in
            for (index, one) in cases.enumerated() {
                group.addTask {
                    try await BadReceiver.with(one.answer) { port in
                        let call = WebhookCall(
                            url: "http://127.0.0.1:\(port)/", id: "msg_1", body: Array("{}".utf8),
                            secrets: [WebhookSecret()])
                        return (index, await sender.send(call))
                    }
                }
            }
            return try await group.reduce(into: [Int: WebhookOutcome]()) { $0[$1.0] = $1.1 }
        }
        for (index, one) in cases.enumerated() {
            let outcome = try #require(results[index])
            switch outcome {
            case .delivered: #expect(one.expected == "delivered", "\(one.answer)")
            case .gone: #expect(one.expected == "gone", "\(one.answer)")
            case .failed(let failure):
                #expect(failure.reason.contains(one.expected), "\(one.answer): \(failure)")
                if case .text = one.answer, failure.status == 503 { #expect(failure.retryAfterSeconds == 86_400) }
                #expect(failure.reason.hasSuffix("."))
            }
        }
    }

    @Test("A call that is cancelled ends at once, and a connection serves many calls")
    func cancelled() async throws {
        let sender = try WebhookSender.live()
        let started = ContinuousClock.now
        try await BadReceiver.with(.silence) { port in
            let call = WebhookCall(
                url: "http://127.0.0.1:\(port)/", id: "msg_1", body: Array("{}".utf8), secrets: [WebhookSecret()])
            let calling = Task { await sender.send(call) }
            try await Task.sleep(for: .milliseconds(100))
            calling.cancel()
            _ = await calling.value
        }
        #expect(ContinuousClock.now - started < .seconds(5))
        let connections = Mutex(0)
        try await BadReceiver.with(
            .text("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"),
            onBytes: { count in connections.withLock { $0 += count == 0 ? 1 : 0 } }
        ) { port in
            for number in 0..<5 {
                let outcome = await sender.send(
                    WebhookCall(
                        url: "http://127.0.0.1:\(port)/a?b=\(number)", id: "msg_\(number)", body: Array("{}".utf8),
                        secrets: [WebhookSecret()]))
                #expect(outcome == .delivered)
            }
        }
        #expect(connections.withLock { $0 } == 1)
    }

    @Test("A connection that its receiver closes is forgotten without another call to the same place")
    func closed() async throws {
        let tls = try NIOSSLContext(configuration: .makeClientConfiguration())
        let connections = WebhookConnections(tls: tls) { _, _ in nil }
        let answer = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
        try await BadReceiver.with(.text(answer), closedAfter: .seconds(1)) { port in
            let address = try WebhookAddress("http://127.0.0.1:\(port)/")
            for _ in 0..<3 {
                _ = try await connections.post([], ["content-length": "0"], to: address, within: .seconds(15))
            }
            #expect(connections.places == [address.place])
            let end = ContinuousClock.now + .seconds(10)
            while !connections.places.isEmpty, ContinuousClock.now < end {
                try await Task.sleep(for: .milliseconds(20))
            }
            #expect(connections.places.isEmpty)
        }
    }

    @Test("A name that leads inward gets no byte, with TLS or without", arguments: ["http", "https"])
    func inward(scheme: String) async throws {
        let judged = Mutex<[IPAddress]>([])
        let wasSecure = Mutex<Set<Bool>>([])
        // Now at the look-up, now on the connected peer, as if the name meant another machine by then.
        for allowed in 0...1 {
            let bytes = Mutex(0)
            judged.withLock { $0 = [] }
            let sender = try WebhookSender.live { address, isSecure in
                wasSecure.withLock { _ = $0.insert(isSecure) }
                return judged.withLock { judged in
                    judged.append(address)
                    let count = judged.count { $0 == address }
                    return count > allowed ? "leads to a machine that must not be reached." : nil
                }
            }
            let note: @Sendable (Int) -> Void = { count in bytes.withLock { $0 += count } }
            let outcome = try await BadReceiver.with(.text("HTTP/1.1 204 No Content\r\n\r\n"), onBytes: note) { port in
                await sender.send(
                    WebhookCall(
                        url: "\(scheme)://localhost:\(port)/", id: "msg_1", body: Array("{}".utf8),
                        secrets: [WebhookSecret()]))
            }
            #expect(outcome.sentence == "The URL leads to a machine that must not be reached.", "\(outcome)")
            #expect(bytes.withLock { $0 } == 0)
            #expect(wasSecure.withLock { $0 } == [scheme == "https"])
        }
    }

    /// Runs Python; returns its status and what it printed.
    private func runPython(_ arguments: [String]) async throws -> (status: Int32, output: String) {
        let process = Process()
        process.executableURL = URL(filePath: pythonProgram ?? "python3")
        process.arguments = arguments
        let pipe = Pipe()
        (process.standardOutput, process.standardError) = (pipe, pipe)
        try process.run()
        let output = await onAThread { (try? pipe.fileHandleForReading.readToEnd()) ?? Data() }
        return (await process.ended(), String(decoding: output, as: UTF8.self))
    }
}

/// A server on a socket that answers everything in one bad way.
enum BadReceiver {
    enum Answer: Sendable {
        case text(String)
        /// A beginning, then zeros without end.
        case endless(String)
        case reset
        case silence
        /// A beginning, then a byte of a header now and then.
        case drip(String)
    }

    static func with<R: Sendable>(
        _ answer: Answer, closedAfter time: TimeAmount? = nil, onBytes: @escaping @Sendable (Int) -> Void = { _ in },
        _ body: (Int) async throws -> R
    ) async throws -> R {
        let server = try await ServerBootstrap(group: .singletonMultiThreadedEventLoopGroup)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(Handler(answer, closedAfter: time, onBytes: onBytes))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        do {
            let result = try await body(server.localAddress?.port ?? 0)
            try await server.close()
            return result
        } catch {
            try await server.close()
            throw error
        }
    }

    private final class Handler: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer
        private let answer: Answer
        private let time: TimeAmount?
        private let onBytes: @Sendable (Int) -> Void
        private var hasAnswered = false

        init(_ answer: Answer, closedAfter time: TimeAmount?, onBytes: @escaping @Sendable (Int) -> Void) {
            (self.answer, self.time, self.onBytes) = (answer, time, onBytes)
        }

        func channelActive(context: ChannelHandlerContext) {
            onBytes(0)
            guard let time else { return }
            context.eventLoop.scheduleTask(in: time) { [channel = context.channel] in channel.close(promise: nil) }
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            onBytes(unwrapInboundIn(data).readableBytes)
            if case .text(let text) = answer { return write(text, context) }
            guard !hasAnswered else { return }
            hasAnswered = true
            switch answer {
            case .text: break
            case .endless(let beginning):
                write(beginning, context)
                pour(context)
            case .reset: context.close(promise: nil)
            case .silence: break
            case .drip(let beginning):
                write(beginning, context)
                context.eventLoop.scheduleRepeatedTask(initialDelay: .seconds(1), delay: .seconds(1)) {
                    [channel = context.channel] _ in channel.writeAndFlush(ByteBuffer(string: "x"), promise: nil)
                }
            }
        }

        private func write(_ text: String, _ context: ChannelHandlerContext) {
            context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: text)), promise: nil)
        }

        private func pour(_ context: ChannelHandlerContext) {
            let (loop, channel) = (context.eventLoop, context.channel)
            let zeros = ByteBuffer(repeating: 0x30, count: 1 << 16)
            loop.scheduleRepeatedTask(initialDelay: .zero, delay: .milliseconds(1)) { task in
                if channel.isActive { channel.writeAndFlush(zeros, promise: nil) } else { task.cancel() }
            }
        }
    }
}
