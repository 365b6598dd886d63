import Hummingbird
import Ledger

/// The calls of devices about orders. A device has no API key: a proof made with the order's key shows that a call is
/// about the order. So its body and its rate are limited.
struct DeviceCalls: Sendable {
    /// The largest body, in bytes.
    static let bodyBytesMax = 1024 * 1024
    /// The calls about one order: 10 a minute.
    static let orderRate = RequestRate(perSecond: 10.0 / 60, burst: 10)
    /// The calls of one address: 60 a minute.
    static let addressRate = RequestRate(perSecond: 1, burst: 60)
    /// The problem of an unknown order and of a wrong proof: a device learns no more.
    static let refused = Problem(.proofRefused, "No order of this id has a key that makes this proof.")

    private let limits: ServerLimits
    private let orders = RateLimiter<String>()
    private let addresses = RateLimiter<SourceAddress>()

    init(limits: ServerLimits) {
        var limits = limits
        limits.bodyBytesMax = min(limits.bodyBytesMax, Self.bodyBytesMax)
        self.limits = limits
    }

    /// Returns the body of a call about an order. Throws a problem for one call too many, or another body.
    func body<Body: KnownFields>(
        _ type: Body.Type, of request: Request, about order: String, _ context: CallerContext
    ) async throws -> Body {
        try admit(order, from: context.source(of: request))
        return try await limits.json(type, of: request)
    }

    private func admit(_ order: String, from address: SourceAddress) throws {
        let waits = [
            addresses.secondsToWait(of: address, at: Self.addressRate),
            orders.secondsToWait(of: order, at: Self.orderRate),
        ]
        guard let seconds = waits.compactMap(\.self).max() else { return }
        throw Problem(
            .tooMany, "A device calls at most 10 times a minute about an order.",
            headers: [.retryAfter: String(Int(seconds.rounded(.up)))])
    }
}
