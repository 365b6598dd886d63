import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1

/// Makes one call: sends a body to an address and reads a bounded answer before a deadline.
struct Caller: Sendable {
    let client: HTTPClient
    let look: CertificateLook
    let responseBytesMax: Int
    /// The seconds a body may arrive at any speed before the minimum speed applies.
    let slowSecondsMax: Double

    init(client: HTTPClient, responseBytesMax: Int, slowSecondsMax: Double = AnswerGathering.slowSecondsMax) {
        self.client = client
        self.responseBytesMax = responseBytesMax
        self.slowSecondsMax = slowSecondsMax
        look = CertificateLook(on: client.eventLoopGroup)
    }

    private static let headers: HTTPHeaders = ["content-type": "application/json", "user-agent": "perennial"]

    /// Calls `url`; never throws.
    func call(_ url: String, sending body: ByteBuffer, until end: ContinuousClock.Instant) async -> Exchange {
        let gathering = AnswerGathering(bytesMax: responseBytesMax, slowSecondsMax: slowSecondsMax)
        do {
            let request = try HTTPClient.Request(
                url: url, method: .POST, headers: Self.headers, body: .byteBuffer(body))
            let left = max(.zero, ContinuousClock.now.duration(to: end))
            let task = client.execute(
                request: request, delegate: gathering, deadline: .now() + .nanoseconds(left.wholeNanoseconds))
            try await withTaskCancellationHandler {
                try await task.get()
            } onCancel: {
                task.cancel()
            }
        } catch {
            var exchange = failed(gathering.exchange, error)
            if TLSTrouble(error) == .unverified, ContinuousClock.now + CertificateLook.limit < end {
                exchange.trouble = await look.trouble(at: url).sentence
            }
            return exchange
        }
        var exchange = gathering.exchange
        if let status = exchange.httpStatus, status != 200 {
            exchange.trouble = Trouble.http(status, body: exchange.body)
        }
        // The client may have been made without our configuration: an answer from another address is not Apple's.
        if gathering.followedRedirect {
            exchange.body = []
            exchange.trouble = Trouble.followedRedirect
        }
        return exchange
    }

    /// Returns the part that had arrived when the call failed, with the reason for the failure.
    private func failed(_ arrived: Exchange, _ error: any Error) -> Exchange {
        var exchange = arrived
        if error is AnswerGathering.TooLarge {
            exchange.body = []
            exchange.trouble = Trouble.tooLarge(responseBytesMax)
        } else if error is AnswerGathering.TooSlow {
            exchange.body = []
            exchange.trouble = Trouble.tooSlow
        } else if let status = arrived.httpStatus, status != 200 {
            exchange.trouble = Trouble.http(status, body: arrived.body)
        } else if arrived.httpStatus != nil, !Trouble.isOutOfTime(error) {
            exchange.trouble = Trouble.brokenTransfer(bytes: arrived.body.count)
            exchange.troubleDetail = Trouble.name(of: error)
        } else {
            exchange.body = []
            exchange.trouble = Trouble.failure(error)
            exchange.troubleDetail = Trouble.detail(of: error)
        }
        return exchange
    }
}
