import Postgres
import Subscriptions

/// The receipt that is asked about a subscription or purchase, during a settlement.
struct PollingDraft: Sendable {
    /// A receipt that would take over.
    struct Successor: Hashable, Sendable {
        let receipt: ReceiptID
        /// Whether its last answer left out what it would be asked about.
        let omits: Bool
    }

    /// How answers left it out, after the newest one that named it.
    struct Omission: Sendable {
        /// Whether the last answer about its poller did.
        let isByPoller: Bool
        /// How many answers that hold purchases did.
        let absences: Int
        /// The time of the first of them.
        let since: Instant?
        /// Whether no receipt can say more: each other one that can be asked leaves it out, and no incident is running.
        let isEverywhere: Bool
    }

    /// So many answers that hold purchases have to leave it out, over this time, before its absence counts.
    private static let absencesMin = 3
    private static let absentFor = Delay.hours(72)

    /// The receipt that was asked about until now.
    let storedPoller: ReceiptID?
    private let storedNextCheckAt: Instant?
    /// The receipt that is asked about from now on; nil when no receipt can vouch.
    private(set) var poller: ReceiptID?
    /// The next time to ask; nil when nothing more is expected.
    private(set) var nextCheckAt: Instant?
    /// Receipts whose verified answers contain it.
    private(set) var offers: [ReceiptID] = []
    /// What answers before this settlement left out of it; nil where the last ones named it.
    var omission: Omission?
    /// Whether the verified answer about its poller leaves it out.
    private(set) var isOmitted = false
    /// Whether an answer shows that nothing changed, without naming it.
    private var isConfirmed = false
    /// Whether to check the schedule although no answer came.
    private var isReviewed = false
    /// The latest moment at which a review wants an answer; nil where the plan stays as it is.
    private var wantedBy: Instant?

    init(row: Row) throws {
        storedPoller = try row.int8IfPresent("polled_by").map { ReceiptID($0) }
        storedNextCheckAt = try row.instantIfPresent("next_check_at")
        (poller, nextCheckAt) = (storedPoller, storedNextCheckAt)
    }

    /// Whether a receipt that did not just answer takes over.
    var isHandedOver: Bool { poller.map { $0 != storedPoller && !offers.contains($0) } ?? false }

    /// Whether an answer is wanted at once.
    var isUrgent: Bool { isHandedOver || wantedBy != nil }

    /// Whether its row has to change.
    var isChanged: Bool { poller != storedPoller || nextCheckAt != storedNextCheckAt }

    /// Whether to check the schedule although nothing was folded.
    var isConcerned: Bool { isHandedOver || isOmitted || isConfirmed || isReviewed || isChanged }

    /// Notes that a verified answer about a receipt contains it.
    mutating func offer(_ receipt: ReceiptID) { offers.append(receipt) }

    /// Notes that the verified answer about its poller leaves it out.
    mutating func omit() { isOmitted = true }

    /// Notes that an answer shows that nothing changed, without naming it: its next check is planned anew.
    mutating func confirm() { isConfirmed = true }

    /// Returns whether one more answer that holds purchases and leaves it out shows at `now` that Apple no longer lists it.
    func isAbsent(at now: Instant, speedup: Int) -> Bool {
        guard let omission, omission.isEverywhere, let since = omission.since else { return false }
        return omission.absences + 1 >= Self.absencesMin && now - since >= Self.absentFor.divided(by: speedup)
    }

    /// Requests a check of the schedule although no answer came; an overdue check stays overdue.
    mutating func review(by moment: Instant?) { (isReviewed, wantedBy) = (true, moment) }

    /// Chooses the newest receipt that can vouch, of those with the best sender. The present poller goes on until a newer one
    /// comes, unless the answer about it, now or the last time, leaves the subscription out.
    ///
    /// A receipt that no customer sent polls only what no customer's receipt holds. A poller that cannot go on stays where no other receipt can take over: it may recover. A successor whose answers
    /// also leave it out is chosen only when the poller is refused or silent.
    mutating func choose(_ successor: Successor?, by fitness: ReceiptFitness) {
        let isAble = poller.map(fitness.canPoll) ?? false
        let isLeftOut = isOmitted || ((omission?.isByPoller ?? false) && !(poller.map(offers.contains) ?? false))
        var best = isAble && !isLeftOut ? poller : nil
        var candidates = offers
        if let successor {
            let isOutranked = best.map { fitness.sender(successor.receipt) > fitness.sender($0) } ?? false
            let isNeeded = best == nil && (!successor.omits || (offers.isEmpty && !isAble))
            if isNeeded || isOutranked && !successor.omits { candidates.append(successor.receipt) }
        }
        for candidate in candidates {
            if let best, !fitness.prefers(candidate, to: best) { continue }
            best = candidate
        }
        poller = best ?? poller
    }

    /// Takes the time of the next check; there is none without a poller.
    mutating func plan(_ next: CheckPlan) {
        switch next {
        case .at(let instant) where isReviewed:
            nextCheckAt = poller == nil ? nil : [instant, storedNextCheckAt, wantedBy].compactMap(\.self).min()
        case .at(let instant): nextCheckAt = poller == nil ? nil : instant
        case .retired: nextCheckAt = nil
        }
    }

    /// Removes the poller, because no receipt can vouch for it any more.
    mutating func release() { (poller, nextCheckAt) = (nil, nil) }
}
