import Crypto
import Foundation
import Subscriptions

/// A fingerprint of an answer's meaning, without the clocks that differ from one answer to the next.
///
/// Two answers with the same meaning are one observation.
struct Meaning: Hashable, Sendable {
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
        let names: [String?] = [
            source, row.transactionID.text, row.originalTransactionID.text, row.webOrderLineItemID?.text,
            row.productID.text, row.groupID?.text, row.ownership?.raw, row.appAccountToken,
        ]
        let instants: [String?] = [
            text(row.purchasedAt), text(row.originalPurchasedAt), text(row.expiresAt), text(row.cancelledAt),
        ]
        var rest: [String?] = [
            String(row.quantity), row.cancellationReason, String(row.isUpgraded),
            row.isTrialPeriod.map { String($0) }, row.isInIntroOfferPeriod.map { String($0) }, row.promotionalOfferID,
            row.offerCodeRefName, row.price.map { "\($0.milliunits) \($0.currency)" },
            row.revocationPercentage.map(String.init),
        ]
        if let sale = row.sale { rest.append(text(sale)) }
        return [names, instants, rest].map(fields).joined(separator: "\u{1F}")
    }

    private static func line(of row: RenewalRow) -> String {
        let renewal = row.renewal
        let names: [String?] = [
            row.originalTransactionID.text, renewal.productID.text, renewal.renewsToProductID?.text,
            renewal.expirationIntent, renewal.promotionalOfferID, renewal.offerCodeRefName,
        ]
        var rest: [String?] = [
            renewal.willRenew.map { String($0) }, renewal.inBillingRetry.map { String($0) },
            text(renewal.graceExpiresAt), renewal.priceConsentStatus, renewal.priceIncreaseStatus,
        ]
        if renewal.isInGraceByStatus { rest.append("grace") }
        if let term = renewal.term {
            rest.append("term \(term.renews.map { "\($0)" } ?? "") \(term.productID?.text ?? "") \(term.plan ?? "")")
        }
        return [names, rest].map(fields).joined(separator: "\u{1F}")
    }

    private static func fields(_ fields: [String?]) -> String {
        fields.map { $0 ?? "\u{0}" }.joined(separator: "\u{1F}")
    }

    private static func text(_ sale: Sale) -> String {
        let payment = sale.payment.map {
            "\($0.number) of \($0.total) until \($0.termEndsAt.milliseconds) for \($0.termPrice ?? -1)"
        }
        let seats = sale.seats.map { "\($0.count) seats, \($0.revoked) revoked" }
        return [sale.plan, payment, seats, sale.isOneOfSeveral ? "several" : nil, sale.revocationType]
            .map { $0 ?? "\u{0}" }.joined(separator: " ")
    }

    private static func text(_ instant: Instant?) -> String? {
        instant.map { String($0.milliseconds) }
    }
}
