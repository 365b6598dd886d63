// Two digests tell that an answer says nothing new: a fingerprint, of the bytes that Apple sent, and a meaning, of what was
// read in them. A worker compares fingerprints before it reads an answer; meanings find the same words in another order.

import Crypto
import Foundation
package import Subscriptions

/// The identity of an answer: all that Apple said except its clocks, and the rules by which we read it. An answer with
/// the fingerprint of the last one changes only clocks, unless time itself changes something.
package struct Fingerprint: Hashable, Sendable {
    let bytes: [UInt8]

    /// Creates the fingerprint of an answer's lasting parts under the rules of an app.
    package init(of body: [UInt8], lasting parts: [Range<Int>], app: App, environment: StoreEnvironment) {
        var hash = Self.hash(ofRules: app.policy(for: environment))
        body.withUnsafeBytes { bytes in
            for part in parts { hash.update(bufferPointer: UnsafeRawBufferPointer(rebasing: bytes[part])) }
        }
        bytes = Array(hash.finalize().prefix(16))
    }

    /// Creates the fingerprint of what an answer means under the rules of an app, in whatever order it says it.
    init(of evidence: Evidence, app: App) {
        var hash = Self.hash(ofRules: app.policy(for: evidence.environment))
        hash.update(data: MeaningDigest(of: .verified(evidence)).digest)
        withUnsafeBytes(of: evidence.receiptCreatedAt?.milliseconds ?? .min) { hash.update(bufferPointer: $0) }
        bytes = Array(hash.finalize().prefix(16))
    }

    init(stored bytes: [UInt8]) { self.bytes = bytes }

    private static func hash(ofRules policy: Policy) -> SHA256 {
        let rules = [
            Int64(Rules.edition), policy.leeway.milliseconds, policy.outageAllowance.milliseconds,
            policy.lateRenewalTolerance.milliseconds, Int64(policy.speedup),
        ]
        var hash = SHA256()
        rules.withUnsafeBytes { hash.update(bufferPointer: $0) }
        return hash
    }
}

/// A fingerprint of an answer's meaning, without its clocks. Answers with the same meaning are one observation.
struct MeaningDigest: Hashable, Sendable {
    /// 32 bytes.
    let digest: [UInt8]

    init(of finding: Finding) {
        var lines: [String]
        switch finding {
        case .verified(let evidence):
            lines = ["verified", evidence.environment.rawValue, evidence.bundleID?.text ?? ""]
            if evidence.confirmsOtherPurchases { lines.append("confirms other purchases") }
            lines += evidence.transactions.map(Self.line(of:)).sorted()
            lines += evidence.renewals.map(Self.line(of:)).sorted()
        case .rejected(let refusal):
            lines = ["rejected", refusal.status.map(String.init) ?? "", refusal.reason]
        case .indeterminate(let failure):
            lines = ["indeterminate", failure.status.map(String.init) ?? "", failure.reason]
        }
        digest = [UInt8](SHA256.hash(data: Data(lines.joined(separator: "\n").utf8)))
    }

    private static func line(of row: TransactionRow) -> String {
        let source =
            switch row.source {
            case .latestReceiptInfo: "latest"
            case .deviceReceipt: "device"
            case .signedText: "signed"
            case .statuses: "statuses"
            }
        let terms: [String?] = [
            source, row.transactionID.text, row.originalTransactionID.text, row.webOrderLineItemID?.text,
            row.productID.text, String(row.quantity), text(row.purchasedAt), text(row.expiresAt), text(row.cancelledAt),
            row.cancellationReason, String(row.isUpgraded),
        ]
        return fields(terms + row.details.words)
    }

    private static func line(of row: RenewalRow) -> String {
        fields([row.originalTransactionID.text] + row.renewal.words)
    }

    private static func fields(_ fields: [String?]) -> String {
        fields.map { $0 ?? "\u{0}" }.joined(separator: "\u{1F}")
    }

    private static func text(_ instant: Instant?) -> String? { instant.map { String($0.milliseconds) } }
}
