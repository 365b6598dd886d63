import AppStore
import Foundation
import Synchronization
import TestSupport

/// An App Store that says what it is told to.
final class ScriptedStore: Sendable {
    /// One answer.
    enum Word: Sendable {
        /// Apple vouches for a subscription; with the secret before the last rotation or with the present one.
        case vouched(previousSecret: Bool)
        /// Apple vouches for one, with rows that cannot be read beside it.
        case odd
        /// A status alone.
        case status(Int)
        /// No answer.
        case silence
    }

    private let word = Mutex(Word.vouched(previousSecret: false))

    func say(_ next: Word) { word.withLock { $0 = next } }

    var client: AppStoreClient {
        AppStoreClient { [self] _ in
            switch word.withLock({ $0 }) {
            case .vouched(let previousSecret): return Self.answer(Self.subscription, previousSecret: previousSecret)
            case .odd: return Self.answer(Self.oddSubscription, previousSecret: false)
            case .status(let status): return Self.answer(#"{"status":\#(status)}"#, previousSecret: false)
            case .silence: return await AppStoreClient.answering(nil).verify(AppStoreRequest(receipt: ""))
            }
        }
    }

    /// Always the same, for a second later Apple would say something else.
    private static let subscription = Sample.verified()
        .replacing(#""latest_receipt_info":["#, with: #""latest_receipt":"AAAA","latest_receipt_info":["#)
    private static let oddSubscription =
        subscription
        .replacing(#""latest_receipt_info":["#, with: #""latest_receipt_info":[{"product_id":7},"#)

    private static func answer(_ body: String, previousSecret: Bool) -> AppStoreAnswer {
        let bytes = Array(body.utf8)
        return AppStoreAnswer(
            environment: .production, httpStatus: 200, body: bytes,
            response: try? VerifyReceiptResponse(parsing: bytes),
            failure: nil, calls: 1, usedPreviousSecret: previousSecret, elapsedMilliseconds: 1, correlationID: nil)
    }
}
