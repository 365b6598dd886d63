import AppStore
package import Ledger
import Subscriptions

extension EvidenceReader {
    /// Reads what is stored by the rules of this program.
    package static let present = EvidenceReader(answer: { $0.evidence }, notification: { $0.evidence })
}

extension KeptNotification {
    /// The evidence in the notification; nil where it holds none.
    var evidence: Evidence? {
        let notification =
            texts.flatMap(SignedNotification.init(packed:)) ?? claims.flatMap(SignedNotification.init(claims:))
        return notification.flatMap { Evidence(in: $0, environment: environment) }
    }
}
