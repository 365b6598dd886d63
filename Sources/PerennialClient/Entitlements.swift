public import Foundation

/// One right of a customer, such as `pro`.
public struct Entitlement: Sendable, Hashable, Decodable {
    /// Where the right comes from. A newer server may know further words; these keep their text.
    public struct Basis: RawRepresentable, Hashable, Sendable, Decodable {
        /// The server's word.
        public let rawValue: String
        /// Makes a basis of a word.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// Apple's verified answer.
        public static let verified = Basis(rawValue: "verified")
        /// An import, until Apple is asked.
        public static let provisional = Basis(rawValue: "provisional")
        /// A person granted it.
        public static let byHand = Basis(rawValue: "by_hand")
        /// Nothing grants it any more.
        public static let none = Basis(rawValue: "none")
    }

    /// The state of the subscription behind it, in the words of `docs/lifecycle.md`. A newer server may know further
    /// ones; these keep their text.
    public struct State: RawRepresentable, Hashable, Sendable, Decodable {
        /// The server's word.
        public let rawValue: String
        /// Makes a state of a word.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// A paid period runs.
        public static let active = State(rawValue: "active")
        /// A charge failed, and access goes on for Apple's grace period.
        public static let gracePeriod = State(rawValue: "grace_period")
        /// A charge failed, and Apple tries again.
        public static let billingRetry = State(rawValue: "billing_retry")
        /// The period is over and its renewal is expected.
        public static let awaitingRenewal = State(rawValue: "awaiting_renewal")
        /// It is over.
        public static let expired = State(rawValue: "expired")
        /// Apple took it back.
        public static let revoked = State(rawValue: "revoked")
    }

    /// The name that the catalog gives the right.
    public let name: String
    /// Whether the customer has it at the instant of the answer.
    public internal(set) var isGranted: Bool
    /// When it ends; nil when it has no end, or is not granted.
    public internal(set) var until: Date?
    /// When access ended, where it is not granted; nil while it is granted.
    public internal(set) var endedAt: Date?
    /// The product that gives it; nil for one granted by hand.
    public let productID: String?
    /// The state of the subscription behind it; nil where there is none.
    public let state: State?
    /// Why it is in that state, in the server's word.
    public let reason: String?
    /// Apple's environment: `Production` or `Sandbox`.
    public let environment: String?
    /// Where it comes from.
    public let basis: Basis?
    /// Apple's clock of the evidence.
    public let asOf: Date?
    /// When Apple last confirmed it.
    public let checkedAt: Date?

    enum CodingKeys: String, CodingKey {
        case until, state, reason, environment, basis
        case name = "entitlement"
        case isGranted = "granted"
        case endedAt = "ended_at"
        case productID = "product_id"
        case asOf = "as_of"
        case checkedAt = "checked_at"
    }

    /// Takes the right away, as the server would have done at this instant.
    mutating func end(at instant: Date) {
        (isGranted, until, endedAt) = (false, nil, instant)
    }
}

/// What a customer may use at one instant.
public struct CustomerEntitlements: Sendable {
    /// Your own id of the customer.
    public let customer: String
    /// The server's clock at the answer.
    public let at: Date
    /// Whether the answer may be outdated: the server says so (Apple could not be asked in time), or the server is away
    /// and this is an earlier answer. ``Entitlement/checkedAt`` says of when it is.
    public internal(set) var isStale: Bool
    /// The longest age in seconds of Apple's newest answer before the server asks again; nil where it does not ask.
    public let maxAgeSeconds: Int?
    /// One for each right that the customer has or had.
    public internal(set) var entitlements: [Entitlement]
    /// Why the server was not asked or did not answer, where this is an earlier answer; nil for an answer of now.
    public internal(set) var failure: PerennialError?

    /// Whether the customer has a right at the instant of the answer. A name that is not in the answer is not granted.
    public func grants(_ name: String) -> Bool {
        entitlements.contains { $0.name == name && $0.isGranted }
    }
}

extension PerennialServer {
    /// The most customers of one batch.
    public static let batchCustomersMax = 1_000

    /// What a customer may use now. A customer whom the server does not know has no entitlements.
    ///
    /// Needs a key of scope `read`. Nothing is remembered: ``EntitlementCache`` does that.
    public func entitlements(of customer: String) async throws -> CustomerEntitlements {
        try await lookup(customer, unless: nil).answer
    }

    /// What many customers may use now, in the order of the question; the same customer may be named twice.
    ///
    /// Needs a key of scope `read`. Throws `invalid` for more than ``batchCustomersMax`` customers; none get an empty
    /// answer without a call.
    public func entitlements(ofEach customers: [String]) async throws -> [CustomerEntitlements] {
        guard !customers.isEmpty else { return [] }
        guard customers.count <= Self.batchCustomersMax else {
            throw PerennialError(.invalid, "A batch has at most \(Self.batchCustomersMax) customers.")
        }
        let call = Call(path: try appPath("entitlements:batch"), body: try JSONText.encode(["customers": customers]))
        let batch = try await answer(BatchAnswer.self, to: call)
        guard batch.customers.map(\.customer) == customers else {
            throw PerennialError(.unreadable, "The answer to a batch names other customers than the question.")
        }
        return batch.customers.map { $0.entitlements(at: batch.at) }
    }

    /// One lookup, or that it would say the same as the answer with this tag.
    func lookup(_ customer: String, unless kept: Looked?) async throws -> Looked {
        let path = try appPath("customers/\(try Call.part(customer))/entitlements")
        let tag = kept?.tag
        let reply = try await reply(to: Call(path: path, headers: tag.map { ["If-None-Match": $0] } ?? [:]))
        if reply.status == 304, let kept { return kept }
        guard reply.status == 200 else { throw reply.failure }
        let answer = try reply.decoded(as: LookupAnswer.self)
        guard let at = answer.at else {
            throw PerennialError(.unreadable, "The answer to a lookup does not say of when it is.")
        }
        return Looked(answer: answer.entitlements(at: at), tag: reply.header("ETag"))
    }
}

/// An answer with the tag of its meaning.
struct Looked: Sendable {
    let answer: CustomerEntitlements
    let tag: String?
}

private struct LookupAnswer: Decodable {
    let customer: String
    let at: Date?
    let stale: Bool
    let maxAgeSeconds: Int?
    let entitlements: [Entitlement]

    enum CodingKeys: String, CodingKey {
        case customer, at, stale, entitlements
        case maxAgeSeconds = "max_age_s"
    }

    func entitlements(at instant: Date) -> CustomerEntitlements {
        CustomerEntitlements(
            customer: customer, at: instant, isStale: stale, maxAgeSeconds: maxAgeSeconds, entitlements: entitlements)
    }
}

private struct BatchAnswer: Decodable {
    let at: Date
    let customers: [LookupAnswer]
}

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
