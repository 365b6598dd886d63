import Crypto
import Foundation
import Postgres
import Subscriptions

/// An order that is to be placed. Orders that arrive together are placed together.
struct AskedOrder: Sendable {
    /// The order's id, a UUID.
    let id = UUID().uuidString.lowercased()
    /// What the app passes to Apple with the purchase, a UUID.
    let accountToken = UUID().uuidString.lowercased()
    /// The key of the order's proofs, 32 bytes in Base64.
    let key: String
    fileprivate let sealedKey: [UInt8]
    fileprivate let request: OrderRequest
    fileprivate let bundleID: BundleID
    let requestKey: String
    fileprivate let device: [UInt8]?

    /// Makes the order's id, account token and key, and seals the key.
    init(_ request: OrderRequest, of bundleID: BundleID, requestKey: String, seal: SecretSeal) throws {
        (self.request, self.bundleID, self.requestKey) = (request, bundleID, requestKey)
        device = try request.device.map { try seal.hash(device: $0, of: bundleID) }
        key = SymmetricKey(size: .bits256).withUnsafeBytes { Data($0).base64EncodedString() }
        sealedKey = try seal.seal(key, for: LedgerOrders.keyOwner(id))
    }
}

extension AskedOrder {
    /// The app, the Idempotency-Key and the digest of the request.
    var requestParameters: [Parameter] { [.text(bundleID.text), .text(requestKey), .bytea(request.digest)] }
}

extension [AskedOrder] {
    /// The columns of `place_orders`.
    var parameters: [Parameter] {
        [
            .texts(map(\.bundleID.text)), .texts(map(\.request.customer)), .texts(map(\.request.productID.text)),
            .int4s(map(\.request.quantity)), .int8s(map(\.request.priceMilliunits)), .texts(map(\.request.currency)),
            .byteas(map(\.device)), .texts(map(\.requestKey)), .byteas(map(\.request.digest)), .texts(map(\.id)),
            .texts(map(\.accountToken)), .byteas(map(\.sealedKey)),
        ]
    }
}

extension OrderRequest {
    /// SHA-256 of everything that was asked.
    fileprivate var digest: [UInt8] {
        let parts = [
            customer, productID.text, "\(quantity)", priceMilliunits.map { "\($0)" } ?? "", currency ?? "",
            device ?? "",
        ]
        return Array(SHA256.hash(data: Data(parts.map { "\($0.utf8.count):\($0)" }.joined().utf8)))
    }
}
