import Postgres
import Subscriptions

/// Which receipt is asked about a subscription or purchase, while that is being settled.
struct PollingDraft: Sendable {
    /// A receipt that would take over.
    struct Heir: Hashable, Sendable {
        let receipt: ReceiptID
        /// Whether its last answer left out what it would be asked about.
        let omits: Bool
    }

    /// The receipt that was asked until now.
    let storedPoller: ReceiptID?
    private let storedNextCheckAt: Instant?
    /// The receipt that is asked from now on; nil when none can vouch.
    private(set) var poller: ReceiptID?
    /// When it is to be asked; nil when nothing more is expected.
    private(set) var nextCheckAt: Instant?
    /// Receipts whose verified answers hold it.
    private(set) var offers: [ReceiptID] = []
    /// Whether the verified answer about its poller leaves it out.
    private(set) var isOmitted = false
    /// Whether the schedule is looked at although nothing was learnt.
    private var isReviewed = false
    /// By when a review wants an answer; nil where the plan stays as it is.
    private var wantedBy: Instant?

    init(row: Row) throws {
        storedPoller = try row.int8IfPresent("polled_by").map { ReceiptID($0) }
        storedNextCheckAt = try row.instantIfPresent("next_check_at")
        (poller, nextCheckAt) = (storedPoller, storedNextCheckAt)
    }

    /// Whether a receipt takes over that did not just answer.
    var isHandedOver: Bool { poller.map { $0 != storedPoller && !offers.contains($0) } ?? false }

    /// Whether an answer is wanted at once.
    var isUrgent: Bool { isHandedOver || wantedBy != nil }

    /// Whether its row has to say something else.
    var isChanged: Bool { poller != storedPoller || nextCheckAt != storedNextCheckAt }

    /// Whether the schedule has to be looked at although nothing was folded.
    var isConcerned: Bool { isHandedOver || isOmitted || isReviewed || isChanged }

    /// A verified answer about a receipt holds it.
    mutating func offer(_ receipt: ReceiptID) { offers.append(receipt) }

    /// The verified answer about its poller leaves it out.
    mutating func omit() { isOmitted = true }

    /// Has the schedule looked at although nothing was learnt; what is overdue stays so.
    mutating func review(by moment: Instant?) { (isReviewed, wantedBy) = (true, moment) }

    /// Lets the newest receipt be asked that can vouch. The present poller goes on until a newer one comes.
    ///
    /// A poller that cannot go on stays where no other receipt can take over: it may recover. An heir whose answers leave
    /// the thing out as well is taken only when the poller is refused or silent.
    mutating func choose(_ heir: Heir?, by fitness: ReceiptFitness) {
        let isAble = poller.map(fitness.canPoll) ?? false
        var best = isAble && !isOmitted ? poller : nil
        var candidates = offers
        if best == nil, let heir, !heir.omits || (offers.isEmpty && !isAble) { candidates.append(heir.receipt) }
        for candidate in candidates {
            if let best, fitness.madeAt(candidate) <= fitness.madeAt(best) { continue }
            best = candidate
        }
        poller = best ?? poller
    }

    /// Takes the moment of the next check; without a poller there is none.
    mutating func plan(_ next: CheckPlan) {
        switch next {
        case .at(let instant) where isReviewed:
            nextCheckAt = poller == nil ? nil : [instant, storedNextCheckAt, wantedBy].compactMap(\.self).min()
        case .at(let instant): nextCheckAt = poller == nil ? nil : instant
        case .retired: nextCheckAt = nil
        }
    }

    /// No receipt can vouch for it any more.
    mutating func release() { (poller, nextCheckAt) = (nil, nil) }
}
