import Foundation
import NIOCore
import Testing

@testable import AppStoreSimulator

@Suite("The simulator reads any valid HTTP, and delivers faults as asked") struct WireTests {
    private func store(_ change: (inout SimulatorOptions) -> Void = { _ in }) -> Simulator {
        var options = SimulatorOptions(seed: 21)
        options.port = 0
        options.customers = 5
        options.traits = .none
        change(&options)
        return Simulator(options, clock: ManualClock().clock)
    }

    @Test("Chunked bodies are read")
    func chunkedBodies() async throws {
        let store = store()
        try await store.serving { port in
            let body = #"{"receipt-data":"aGVsbG8="}"#
            let head = "POST /verifyReceipt HTTP/1.1\r\nhost: store\r\nCONNECTION: Close\r\n"
            let parts = [body.prefix(5), body.dropFirst(5)]
            let chunks = parts.map { String($0.utf8.count, radix: 16) + ";x=y\r\n" + $0 + "\r\n" }.joined()
            let chunked = head + "Transfer-Encoding: chunked\r\n\r\n" + chunks + "0\r\n\r\n"
            let answer = try await RawConnection.exchange(chunked, port: port)
            #expect(answer.hasSuffix(#"{"status":21002}"#))
        }
    }

    /// Once, and only while the body is awaited.
    @Test("100 Continue is owed once")
    func continueIsOwedOnce() throws {
        var reader = StoreRequestReader(bodyBytesMax: 100)
        var head = ByteBuffer(string: "POST /x HTTP/1.1\r\nExpect: 100-Continue\r\nContent-Length: 2\r\n\r\n")
        var whole = head
        reader.append(&head)
        let early = try reader.next()
        let owed = [reader.takeContinue(), reader.takeContinue()]
        #expect(early?.body == nil && owed == [true, false])
        var body = ByteBuffer(string: "{}")
        reader.append(&body)
        let first = try reader.next()
        #expect(first?.body == Array("{}".utf8))
        whole.writeString("[]")
        reader.append(&whole)
        let second = try reader.next()
        let isOwedAgain = reader.takeContinue()
        #expect(second?.body == Array("[]".utf8) && !isOwedAgain)
    }

    @Test("What is not HTTP is refused")
    func whatIsNotHTTP() async throws {
        try await store { $0.bodyBytesMax = 100 }.serving { port in
            for nonsense in ["nonsense\r\n\r\n", "POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n"] {
                let answer = try await RawConnection.exchange(nonsense, port: port)
                #expect(answer.hasPrefix("HTTP/1.1 400 "))
            }
            let chunked =
                "POST /verifyReceipt HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n400\r\n"
                + String(repeating: "x", count: 100)
            let answer = try await RawConnection.exchange(chunked, port: port)
            #expect(answer.hasPrefix("HTTP/1.1 413 "))
        }
    }

    /// Answers of different speed come in the order of their requests.
    @Test("Pipelined requests keep their order")
    func pipelinedRequestsKeepTheirOrder() async throws {
        try await store().serving { port in
            let verify = RawConnection.post("/verifyReceipt", "{}", keepAlive: true)
            let health = "GET /simulator/healthz HTTP/1.1\r\nHost: store\r\n\r\n"
            let requests = verify + health + verify + RawConnection.post("/verifyReceipt", "[")
            let answers = try await RawConnection.exchange(requests, port: port)
            let bodies = answers.components(separatedBy: "\r\n").filter { $0.hasPrefix("{") }
                .map { $0.components(separatedBy: "HTTP/1.1")[0] }
            #expect(bodies == [#"{"status":21002}"#, #"{"status":"ok"}"#, #"{"status":21002}"#, #"{"status":21000}"#])
        }
    }

    @Test("A request that comes in drops is read")
    func aRequestInDrops() async throws {
        let store = store()
        try await store.serving { port in
            let receipt = try #require(store.receipts().first?.receipt)
            let request = RawConnection.post(
                "/verifyReceipt", #"{"receipt-data":"\#(receipt)","password":"\#(store.sharedSecret)"}"#)
            let drops = stride(from: 0, to: request.utf8.count, by: 97).map {
                String(decoding: Array(request.utf8).dropFirst($0).prefix(97), as: UTF8.self)
            }
            #expect(try await RawConnection.exchange(drops, port: port).contains(#"{"status":0,"#))
        }
    }

    @Test("Answers may drip, and too many requests are refused")
    func drippingAndTooManyRequests() async throws {
        let store = store()
        try await store.serving { port in
            let post = RawConnection.post("/verifyReceipt", "{}")
            var drip = Fault(.drip)
            drip.seconds = 0.1
            store.add(drip)
            let answer = try await RawConnection.exchange(post, port: port)
            #expect(answer.contains("Content-Length: 16\r\n") && answer.hasSuffix(#"{"status":21002}"#))
            store.clearFaults()
            var busy = Fault(.http)
            busy.code = 429
            busy.seconds = 2
            store.add(busy)
            let refused = try await RawConnection.exchange(post, port: port)
            #expect(refused.hasPrefix("HTTP/1.1 429 Too Many Requests\r\n") && refused.contains("Retry-After: 2\r\n"))
        }
    }

    @Test("Latency is not a fault")
    func latencyIsNotAFault() {
        let late = store { $0.latencyMilliseconds = 250 }
        let request = SimulatorRequest(method: "POST", path: "/verifyReceipt", body: Array("{}".utf8))
        #expect(late.respond(to: request).delaySeconds == 0.25)
        #expect(late.respond(to: SimulatorRequest(method: "GET", path: "/simulator/healthz")).delaySeconds == 0)
    }

    @Test("A bad day has every kind at its rate")
    func aBadDayHasEveryKindAtItsRate() throws {
        let faults = try Fault.mixed(rate: 0.2)
        let store = store { $0.faults = faults }
        let body = Array("{}".utf8)
        var kinds: [String: Int] = [:]
        for _ in 0..<5000 {
            let reply = store.respond(to: SimulatorRequest(method: "POST", path: "/verifyReceipt", body: body))
            let isPlain = reply.body == Array(#"{"status":21002}"#.utf8)
            let kind = "\(reply.code) \(reply.delaySeconds) \(reply.delivery) \(isPlain ? "" : "\(reply.body.count)")"
            kinds[kind, default: 0] += 1
        }
        // A body without a receipt is 21002 by itself, so that kind hides among the right answers.
        let right = kinds.removeValue(forKey: "200 0.0 whole ") ?? 0
        #expect((3950...4350).contains(right), "seed 21 gave \(right) of 5000")
        #expect(kinds.count == 9, "\(kinds)")
    }

    @Test("Faults are drawn by their weights")
    func faultsByWeight() throws {
        let faults = try Fault.mixed(rate: 0.4, kinds: "21104=3,hang", seconds: 9)
        #expect(faults.map { $0.kind } == [.status, .hang])
        #expect(faults[0].status == 21104 && faults[1].seconds == 9)
        #expect(abs(faults[0].share - 0.3) < 1e-9 && abs(faults[1].share - 0.1) < 1e-9)
        for nonsense in ["", "ghost", "200", "status", "hang=", "hang=0", "hang=x"] {
            #expect(throws: UnknownFaultKind.self) { try Fault.mixed(rate: 0.1, kinds: nonsense) }
        }
    }
}
