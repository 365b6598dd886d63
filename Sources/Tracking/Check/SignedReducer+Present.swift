import AppStore
package import Ledger
import Subscriptions

extension SignedReducer {
    /// Reduces what is stored where this program reads the same in it afterwards.
    package static let present = SignedReducer(
        notification: { kept in
            guard let claims = kept.texts.flatMap(SignedNotification.keptClaims(ofPacked:)) else { return nil }
            let after = SignedNotification(claims: claims).flatMap { Evidence(in: $0, environment: kept.environment) }
            // A notification that is no fact says nothing before and after; its claims stay for later versions.
            guard let before = kept.evidence else { return after == nil ? claims : nil }
            return after?.saysTheSame(as: before) == true ? claims : nil
        },
        answer: { kept in
            var reduced = kept
            reduced.body = ShortText.reducedStrings(of: kept.body)
            guard let before = kept.evidence, let after = reduced.evidence, after.saysTheSame(as: before) else {
                return nil
            }
            return reduced.body
        })
}

extension Evidence {
    fileprivate func saysTheSame(as other: Evidence) -> Bool {
        transactions == other.transactions && renewals == other.renewals && asOf == other.asOf
            && environment == other.environment && bundleID == other.bundleID && isComplete == other.isComplete
    }
}
