import Hummingbird
import Ledger

/// The calls of devices about orders. A device has no API key: a proof made with the order's key shows that a call is
/// about the order. So its body and its rate are limited.
struct DeviceCalls: Sendable {
    /// The largest body, in bytes.
    static let bodyBytesMax = 1024 * 1024
    /// The calls about one order with its proof: 10 a minute.
    static let orderRate = RequestRate(perSecond: 10.0 / 60, burst: 10)
    /// The failed calls of one address: 60 a minute.
    static let failureRate = RequestRate(perSecond: 1, burst: 60)
    /// The wrong proofs of one address about one order: 600 a minute, many more than devices behind one proxy make.
    static let wrongProofRate = RequestRate(perSecond: 10, burst: 600)
    /// The problem of an unknown order and of a wrong proof: a device learns no more.
    static let refused = Problem(.proofRefused, "No order of this id has a key that makes this proof.")

    private let ledger: LedgerOrders
    private let limits: ServerLimits
    private let orders = RateLimiter<String>()
    private let failures = RateLimiter<SourceAddress>()
    private let wrongProofs = RateLimiter<WrongProof>()

    /// Whose wrong proofs about what are counted together.
    private struct WrongProof: Hashable {
        let address: SourceAddress
        let order: String
    }

    init(orders: LedgerOrders, limits: ServerLimits) {
        var limits = limits
        limits.bodyBytesMax = min(limits.bodyBytesMax, Self.bodyBytesMax)
        self.limits = limits
        ledger = orders
    }

    /// Returns the body of a call about an order that `isProved` accepts. Throws a problem for any other, and for one
    /// call too many.
    ///
    /// Many devices share an address, so only its failures count, and a proved call passes whatever others did: the proof
    /// is checked first. Once an address failed too often, a call about an order that does not exist is refused
    /// before its body is read, and so is one about an order for which it sent 600 wrong proofs within a minute.
    func body<Body: KnownFields>(
        _ type: Body.Type, of request: Request, about order: String, _ context: CallerContext,
        isProved: (Body) async throws -> Bool
    ) async throws -> Body {
        let address = context.source(of: request, behind: limits.trustedProxies)
        let asked = WrongProof(address: address, order: order)
        let body: Body
        do {
            if wrongProofs.isExhausted(asked, at: Self.wrongProofRate) { throw Self.refused }
            if failures.isExhausted(address, at: Self.failureRate), try await ledger.party(to: order) == nil {
                throw Self.refused
            }
            body = try await limits.json(type, of: request)
            guard try await isProved(body) else { throw Self.refused }
        } catch {
            let isCallers = Problem(telling: error).kind.status.kind == .clientError
            if isCallers { _ = wrongProofs.secondsToWait(of: asked, at: Self.wrongProofRate) }
            guard isCallers, let seconds = failures.secondsToWait(of: address, at: Self.failureRate)
            else { throw error }
            throw Self.tooMany("Too many calls from this address failed.", seconds)
        }
        if let seconds = orders.secondsToWait(of: order, at: Self.orderRate) {
            throw Self.tooMany("A device calls at most 10 times a minute about an order.", seconds)
        }
        return body
    }

    private static func tooMany(_ detail: String, _ seconds: Double) -> Problem {
        Problem(.tooMany, detail, headers: [.retryAfter: String(Int(seconds.rounded(.up)))])
    }
}
