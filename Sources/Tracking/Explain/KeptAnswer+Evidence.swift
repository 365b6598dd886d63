import AppStore
import Ledger
import Subscriptions

extension KeptAnswer {
    /// The evidence in the stored answer by the present rules; nil when they do not vouch for it.
    package var evidence: Evidence? {
        let answer = AppStoreAnswer(body: body, from: Endpoint(environment))
        let settled = observation.firstAsOf
        return Finding(in: answer, for: bundleID, clock: settled, limit: .settled(settled)).evidence
    }
}

extension AppStoreAnswer {
    /// Creates an answer from storage instead of the network.
    init(body: [UInt8], from endpoint: Endpoint) {
        var response: VerifyReceiptResponse?
        var failure: String?
        do {
            response = try VerifyReceiptResponse(parsing: body)
        } catch {
            failure = "\(error)"
        }
        self.init(
            environment: endpoint, httpStatus: nil, body: body, response: response, failure: failure, calls: 0,
            usedPreviousSecret: false, elapsedMilliseconds: 0, correlationID: nil)
    }
}
