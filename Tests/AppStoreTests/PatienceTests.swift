import Foundation
import Hummingbird
import NIOCore
import Testing

@testable import AppStore

@Suite("No call takes too long, and none is repeated too soon") struct PatienceTests {
    @Test("A body that comes in drops is not waited for")
    func aBodyThatComesInDropsIsNotWaitedFor() async throws {
        let store = ScriptedHTTPStore()
        try await store.serving { _ in
            Response(
                status: .ok,
                body: .init { writer in
                    for _ in 0..<500 {
                        try await writer.write(ByteBuffer(string: " "))
                        try await Task.sleep(for: .milliseconds(20))
                    }
                    try await writer.finish(nil)
                })
        } _: { options in
            let exchange = try await options.withClient { client in
                await HTTPCall(client: client, responseBytesMax: 1_000_000, slowSecondsMax: 0.1).call(
                    options.productionURL, sending: ByteBuffer(string: "{}"), until: .now + .seconds(60))
            }
            #expect(exchange.failure == CallFailure.tooSlow)
            #expect(exchange.httpStatus == 200)
            #expect(exchange.body.isEmpty)
        }
    }

    @Test("Apple's wish to wait reaches the answer")
    func applesWishToWaitReachesTheAnswer() async throws {
        let store = ScriptedHTTPStore()
        try await store.serving { _ in
            Response(status: .tooManyRequests, headers: [.retryAfter: "17"])
        } _: { options in
            let answer = try await store.verify(LiveTroubleTests.request, options)
            #expect(answer.httpStatus == 429)
            #expect(answer.retryAfterSeconds == 17)
        }
    }
}
