import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1

/// Makes one call: sends a body to an address and reads a bounded answer before a deadline.
struct HTTPCall: Sendable {
    let client: HTTPClient
    let look: CertificateInspection
    let responseBytesMax: Int
    /// The seconds a body may arrive at any speed before the minimum speed applies.
    let slowSecondsMax: Double

    init(client: HTTPClient, responseBytesMax: Int, slowSecondsMax: Double = AnswerGathering.slowSecondsMax) {
        self.client = client
        self.responseBytesMax = responseBytesMax
        self.slowSecondsMax = slowSecondsMax
        look = CertificateInspection(on: client.eventLoopGroup)
    }

    static let jsonHeaders: HTTPHeaders = ["content-type": "application/json", "user-agent": "perennial"]

    /// Calls `url`; never throws.
    func call(
        _ url: String, _ method: HTTPMethod = .POST, headers: HTTPHeaders = jsonHeaders, sending body: ByteBuffer?,
        until end: ContinuousClock.Instant
    ) async -> CallResult {
        let gathering = AnswerGathering(bytesMax: responseBytesMax, slowSecondsMax: slowSecondsMax)
        do {
            let request = try HTTPClient.Request(
                url: url, method: method, headers: headers, body: body.map { .byteBuffer($0) })
            let left = max(.zero, ContinuousClock.now.duration(to: end))
            let task = client.execute(
                request: request, delegate: gathering, deadline: .now() + .nanoseconds(left.wholeNanoseconds))
            try await withTaskCancellationHandler {
                try await task.get()
            } onCancel: {
                task.cancel()
            }
        } catch {
            var result = failed(gathering.result, error)
            if TLSFailure(error) == .unverified, ContinuousClock.now + CertificateInspection.limit < end {
                result.failure = await look.failure(at: url).sentence
            }
            return result
        }
        var result = gathering.result
        if let status = result.httpStatus, status != 200 {
            result.failure = CallFailure.http(status, body: result.body)
        }
        // The client may have been made without our configuration: an answer from another address is not Apple's.
        if gathering.followedRedirect {
            result.body = []
            result.failure = CallFailure.followedRedirect
        }
        return result
    }

    /// Returns the part that had arrived when the call failed, with the reason for the failure.
    private func failed(_ arrived: CallResult, _ error: any Error) -> CallResult {
        var result = arrived
        if error is AnswerGathering.TooLarge {
            result.body = []
            result.failure = CallFailure.tooLarge(responseBytesMax)
        } else if error is AnswerGathering.TooSlow {
            result.body = []
            result.failure = CallFailure.tooSlow
        } else if let status = arrived.httpStatus, status != 200 {
            result.failure = CallFailure.http(status, body: arrived.body)
        } else if arrived.httpStatus != nil, !CallFailure.isOutOfTime(error) {
            result.failure = CallFailure.brokenTransfer(bytes: arrived.body.count)
            result.failureDetail = CallFailure.name(of: error)
        } else {
            result.body = []
            result.failure = CallFailure.failure(error)
            result.failureDetail = CallFailure.detail(of: error)
        }
        return result
    }
}
