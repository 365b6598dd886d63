import Hummingbird
import Ledger
import Metrics
import Synchronization
import Tracking

/// Middleware that counts requests and their durations by route. A path contains a customer's id; a route does not.
struct CountRequests: RouterMiddleware {
    let counters: RequestCounters

    func handle(
        _ request: Request, context: CallerContext,
        next: (Request, CallerContext) async throws -> Response
    ) async throws -> Response {
        let start = ContinuousClock.now
        let response = try await next(request, context)
        counters.count(
            .init(
                method: request.method, route: context.endpointPath ?? "none", status: Int(response.status.code)),
            elapsed: ContinuousClock.now - start)
        return response
    }
}

/// The counters of requests by method, route and status, so that the hot path needs a single dictionary lookup.
final class RequestCounters: Sendable {
    struct Key: Hashable, Sendable {
        let method: HTTPRequest.Method
        let route: String
        let status: Int
    }

    private let registry: MetricsRegistry
    private let known = Mutex<[Key: (Counter, Recorder)]>([:])

    init(registry: MetricsRegistry) { self.registry = registry }

    func count(_ key: Key, elapsed: Duration) {
        let (counter, recorder) = known.withLock { known in
            if let pair = known[key] { return pair }
            let pair = made(for: key)
            // A caller may invent methods. Those are counted together and not cached one by one.
            if Self.methods.contains(key.method) { known[key] = pair }
            return pair
        }
        counter.increment()
        recorder.record(elapsed.seconds)
    }

    private static let methods: Set<HTTPRequest.Method> = [.get, .head, .post, .put, .patch, .delete, .options]

    private func made(for key: Key) -> (Counter, Recorder) {
        let method = Self.methods.contains(key.method) ? key.method.rawValue : "other"
        let labels = [("method", method), ("route", key.route), ("status", String(key.status))]
        return (registry.counter(.requests, labels), registry.histogram(.requestSeconds, [("route", key.route)]))
    }
}

/// The counters of lookups by the source of their answers.
struct LookupCounters: Sendable {
    private let stored: Counter
    private let computed: Counter
    private let history: Counter

    init(registry: MetricsRegistry) {
        func counter(_ source: CustomerEntitlements.Source) -> Counter {
            registry.counter(.lookups, [("source", source.rawValue)])
        }
        (stored, computed, history) = (counter(.stored), counter(.computed), counter(.history))
    }

    /// Counts one answer.
    func count(_ source: CustomerEntitlements.Source) {
        switch source {
        case .stored: stored.increment()
        case .computed: computed.increment()
        case .history: history.increment()
        }
    }
}
