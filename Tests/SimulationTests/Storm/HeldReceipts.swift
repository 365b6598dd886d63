import AppStoreSimulator
import SeededRandom
import Subscriptions
import Tracking

/// Receipts that devices still hold and send: of any age, without a date, of another app, sent before, sent by another
/// customer.
struct HeldReceipts {
    private let simulator: Simulator
    private var random: Seeded
    private var sent: [Submission] = []

    init(_ simulator: Simulator, seed: UInt64) {
        self.simulator = simulator
        random = Seeded(seed: seed)
    }

    /// What devices send next. Half of those who came back send an older or undated receipt instead of their newest one.
    mutating func next(_ uploads: [SimulatedUpload]) -> [Submission] {
        var submissions = uploads.map { upload in
            guard upload.reason == .resubscription, Bool.random(using: &random) else { return Submission(upload) }
            return older(than: upload) ?? Submission(upload)
        }
        submissions += (0..<4).compactMap { _ in one() }
        sent += submissions
        return submissions.shuffled(using: &random)
    }

    private mutating func older(than upload: SimulatedUpload) -> Submission? {
        guard let truth = simulator.truth(of: upload.customer) else { return nil }
        return receipt(of: truth, sentBy: upload.customer, Bool.random(using: &random) ? .undated : .dated)
    }

    private mutating func one() -> Submission? {
        let position = Int.random(in: 0..<simulator.customerCount, using: &random)
        guard let truth = simulator.truth(from: position, count: 1).first, !truth.accountDeleted else { return nil }
        switch Int.random(in: 0..<8, using: &random) {
        case 0:
            return receipt(of: truth, sentBy: truth.customer, Bool.random(using: &random) ? .foreign : .disguised)
        case 1: return receipt(of: truth, sentBy: truth.customer, .undated)
        case 2: return receipt(of: truth, sentBy: "guest\(position % 10)", .dated)
        case 3...4: return sent.randomElement(using: &random)
        default: return receipt(of: truth, sentBy: truth.customer, .dated)
        }
    }

    private mutating func receipt(
        of truth: CustomerTruth, sentBy customer: String, _ kind: DeviceReceipt
    ) -> Submission? {
        let bought = truth.subscriptions.flatMap { $0.periods.map(\.booked) }.min() ?? truth.now
        let writtenAt = Int64.random(in: min(bought, truth.now)...truth.now, using: &random)
        let restore = Int.random(in: 0...2, using: &random)
        return simulator.receipt(of: truth.customer, writtenAt: writtenAt, restore: restore, kind).map {
            Submission(bundleID: BundleID(truth.app), customer: customer, receipt: $0)
        }
    }
}

extension Submission {
    /// What the device sent.
    init(_ upload: SimulatedUpload) {
        self.init(bundleID: BundleID(upload.app), customer: upload.customer, receipt: upload.receipt)
    }
}
