import Foundation

/// The entitlements of customers, with a memory for the time when the server is away.
///
/// Each question goes to the server, with the tag of the last answer, so that an unchanged answer is not sent again.
/// While the server is away the last answer is used:
///
/// * up to `usableSeconds` after the server last gave or confirmed it;
/// * marked ``CustomerEntitlements/isStale``, with the ``CustomerEntitlements/failure``; `checkedAt` says of when it is;
/// * never beyond an entitlement's `until`: what has ended by then is not granted.
///
/// Without such an answer the question throws. "Away" is every failure but a wrong question (`reject`): no network, an
/// overloaded server, a revoked key. After a failure the cache does not ask for `pauseSeconds`, or for as long as the
/// server says, about customers whose answer it has, so that a silent server does not hold every request of yours.
public actor EntitlementCache {
    /// The longest pause that the server's advice brings, in seconds.
    public static let pauseSecondsMax: Double = 60

    private struct Kept {
        var looked: Looked
        /// When the answer came, in seconds of this machine's uptime.
        let receivedAt: Double
        /// When the server last gave or confirmed it.
        var confirmedAt: Double
        var lastUse: Int
    }

    private let server: PerennialServer
    private let usableSeconds: Double
    private let customersMax: Int
    private let pauseSeconds: Double
    private let uptime: @Sendable () -> Double
    private var kept: [String: Kept] = [:]
    private var uses = 0
    private var pause: (until: Double, because: PerennialError)?

    /// Makes an empty cache.
    /// - Parameters:
    ///   - server: The server, with a key of scope `read`.
    ///   - usableSeconds: How long an answer may be used while the server is away, in seconds.
    ///   - customersMax: The most customers that are remembered; those asked about longest ago are forgotten first.
    ///   - pauseSeconds: How long the server is not asked after a failure, in seconds.
    public init(
        _ server: PerennialServer, usableSeconds: Double, customersMax: Int = 10_000, pauseSeconds: Double = 5
    ) {
        self.init(
            server, usableSeconds: usableSeconds, customersMax: customersMax, pauseSeconds: pauseSeconds,
            uptime: { ProcessInfo.processInfo.systemUptime })
    }

    init(
        _ server: PerennialServer, usableSeconds: Double, customersMax: Int, pauseSeconds: Double,
        uptime: @escaping @Sendable () -> Double
    ) {
        self.server = server
        self.usableSeconds = usableSeconds
        self.customersMax = max(1, customersMax)
        self.pauseSeconds = pauseSeconds
        self.uptime = uptime
    }

    /// The number of customers that are remembered.
    public var count: Int { kept.count }

    /// What a customer may use: the server's answer, or the last one while the server is away.
    public func entitlements(of customer: String) async throws -> CustomerEntitlements {
        if let pause, uptime() < pause.until, let answer = remembered(customer, because: pause.because) {
            return answer
        }
        let known = kept[customer]?.looked
        do {
            let looked = try await server.lookup(customer, unless: known)
            pause = nil
            keep(looked, of: customer)
            return looked.answer
        } catch let error as PerennialError {
            switch error.disposition {
            case .reject: throw error
            case .retry(let advised):
                let seconds = min(max(pauseSeconds, advised ?? 0), Self.pauseSecondsMax)
                pause = (uptime() + seconds, error)
            case .alarm: pause = (uptime() + pauseSeconds, error)
            }
            guard let answer = remembered(customer, because: error) else { throw error }
            return answer
        }
    }

    /// Forgets a customer, such as one who was erased.
    public func forget(_ customer: String) { kept[customer] = nil }

    /// The last answer, as far as it may still be used.
    private func remembered(_ customer: String, because failure: PerennialError) -> CustomerEntitlements? {
        let now = uptime()
        guard var known = kept[customer], now - known.confirmedAt <= usableSeconds else { return nil }
        uses += 1
        known.lastUse = uses
        kept[customer] = known
        var answer = known.looked.answer
        // The server's clock goes on from its answer, whatever this machine's clock says.
        let serverNow = answer.at.addingTimeInterval(now - known.receivedAt)
        for index in answer.entitlements.indices {
            guard let until = answer.entitlements[index].until, until <= serverNow else { continue }
            answer.entitlements[index].end(at: until)
        }
        answer.isStale = true
        answer.failure = failure
        return answer
    }

    private func keep(_ looked: Looked, of customer: String) {
        let known = kept[customer]
        // Two questions at once may be answered out of order.
        if let known, known.looked.answer.at > looked.answer.at { return }
        uses += 1
        let now = uptime()
        let isSame = known.map { $0.looked.answer.at == looked.answer.at && $0.looked.tag == looked.tag } ?? false
        kept[customer] = Kept(
            looked: looked, receivedAt: isSame ? known?.receivedAt ?? now : now, confirmedAt: now, lastUse: uses)
        if kept.count > customersMax { forgetOldest() }
    }

    /// Forgets a tenth at once, so that a full cache does not search for each new customer.
    private func forgetOldest() {
        let spare = max(1, customersMax / 10)
        for (customer, _) in kept.sorted(by: { $0.value.lastUse < $1.value.lastUse }).prefix(spare) {
            kept[customer] = nil
        }
    }
}
