package import AsyncHTTPClient
import NIOCore
import NIOHTTP1

/// Asks the configured addresses of the App Store whether they answer at all. Nothing that it sends is a receipt or a
/// secret.
package struct StoreReach: Sendable {
    private let call: HTTPCall
    private let limit: Duration

    /// Creates it on a client that has `AppStoreOptions.clientConfiguration`. `limit` is for each address.
    package init(client: HTTPClient, limit: Duration = .seconds(10)) {
        call = HTTPCall(client: client, responseBytesMax: 1 << 20)
        self.limit = limit
    }

    /// Returns why an address of verifyReceipt does not answer as Apple does; nil where it does.
    ///
    /// An empty object has no receipt, so Apple answers with a status such as 21002.
    package func failure(ofVerifyReceiptAt url: String) async -> String? {
        let result = await call.call(url, sending: ByteBuffer(string: "{}"), until: .now + limit)
        if let failure = result.failure { return sentence(failure, result) }
        // A status other than 200, and text that is no JSON, are failures of their own.
        guard result.body.contains(Array("\"status\"".utf8)) else {
            return "It answers, but not as verifyReceipt does; check the configured address."
        }
        return nil
    }

    /// Returns why an address of the Server API does not answer as Apple does; nil where it does.
    ///
    /// A request without a token is refused with 401, and so shows that the address answers.
    package func failure(ofServerAPIAt url: String) async -> String? {
        let address = (url.hasSuffix("/") ? String(url.dropLast()) : url) + "/inApps/v1/subscriptions/0"
        let result = await call.call(address, .GET, sending: nil, until: .now + limit)
        if result.httpStatus == 401 { return nil }
        guard let failure = result.failure else {
            return "It answers a request without a key, so it is not Apple's; check the configured address."
        }
        return sentence(failure, result)
    }

    private func sentence(_ failure: String, _ result: CallResult) -> String {
        result.failureDetail.map { "\(failure) (\($0))" } ?? failure
    }
}
