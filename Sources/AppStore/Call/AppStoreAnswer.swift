import AsyncHTTPClient
import Foundation
import JSON
import NIOCore
import NIOHTTP1
import NIOSSL
package import Subscriptions
import Synchronization

/// The result of asking Apple about one receipt. An outage is a result too: `response` is nil and `failure` says why.
package struct AppStoreAnswer: Sendable {
    /// The endpoint that gave the final answer, or failed to.
    package let environment: StoreEnvironment
    /// The HTTP status of the final call; nil when none arrived.
    package let httpStatus: Int?
    /// The final body as received, at most `AppStoreOptions.responseBytesMax`; empty if none arrived or it was too
    /// large. After a broken transfer, the part that arrived.
    package let body: [UInt8]
    /// What the bytes of the body show; nil if HTTP was not 200.
    package internal(set) var outline: AnswerOutline?
    /// What the Server API said; nil for an answer of verifyReceipt.
    package internal(set) var server: ServerVerdict?
    /// The endpoint of the Server API that was asked last; nil for an answer of verifyReceipt.
    package internal(set) var lastEndpoint: ServerEndpoint?
    /// The body of an answer of verifyReceipt, where its call succeeded.
    let unread: UnreadBody?
    /// Why the call brought no usable answer, in one sentence; nil where the body has to show it.
    let callFailure: String?
    /// The network's own description of the failure, if `failure` says less; for the log. Never contains a secret.
    package internal(set) var failureDetail: String?
    /// The number of requests sent for this answer: of verifyReceipt 0 to 3.
    package let calls: Int
    /// Whether the final call used the previous secret; unless its status is 21004 again, the current secret is wrong.
    package internal(set) var usedPreviousSecret = false
    /// The duration of all calls together, in milliseconds.
    package let elapsedMilliseconds: Int
    /// Whether Apple was not asked, because it refuses the app's shared secret.
    package var isHeldBack = false
    /// What the Server API said beside this answer of verifyReceipt, to compare both; nil where one channel was asked.
    package var compared: ServerVerdict?
    /// Where verifyReceipt refused the app's secret, so that this answer of the Server API counts; nil otherwise.
    package var secretRefusedIn: StoreEnvironment?
    /// The wait that Apple asked for with HTTP other than 200, in seconds, of any length.
    package internal(set) var retryAfterSeconds: Double?

    /// The body, which the first call decodes; nil if the call failed or it is no verifyReceipt answer.
    package var response: VerifyReceiptResponse? { try? unread?.decoded.get() }

    /// The reason there is no usable response, in one sentence; nil if there is one. Never contains a secret, a receipt
    /// or a host name, so that it may be shown to any reader. The first call may decode the body.
    package var failure: String? {
        guard case .failure(let error) = unread?.decoded else { return callFailure }
        // An answer from storage has no HTTP status.
        return httpStatus == nil
            ? "Not an App Store answer: \(error.reason)."
            : "The store answered HTTP 200 with \(error.reason); ask again later."
    }

    /// The failure with its detail, for the operator.
    package var failureInFull: String? {
        failure.map { sentence in failureDetail.map { "\(sentence) (\($0))" } ?? sentence }
    }
}

extension AppStoreAnswer {
    /// Creates an answer, for tests and other implementations of the client. Its body is decoded unless there is a
    /// `failure`.
    package init(
        environment: StoreEnvironment, httpStatus: Int?, body: [UInt8], failure: String?, failureDetail: String? = nil,
        calls: Int, usedPreviousSecret: Bool, elapsedMilliseconds: Int,
        retryAfterSeconds: Double? = nil
    ) {
        self.init(
            environment: environment, httpStatus: httpStatus, body: body,
            outline: httpStatus == 200 ? AnswerOutline(of: body) : nil,
            unread: failure == nil ? UnreadBody(body) : nil, callFailure: failure, failureDetail: failureDetail,
            calls: calls, usedPreviousSecret: usedPreviousSecret, elapsedMilliseconds: elapsedMilliseconds,
            retryAfterSeconds: retryAfterSeconds)
    }

    /// Creates an answer of the Server API. Its body is the text that ``ServerContents`` reads; empty without one.
    package init(
        environment: StoreEnvironment, server: ServerVerdict, httpStatus: Int?, body: [UInt8] = [],
        failureDetail: String? = nil, calls: Int, elapsedMilliseconds: Int = 0,
        retryAfterSeconds: Double? = nil, lastEndpoint: ServerEndpoint = .statuses
    ) {
        self.init(
            environment: environment, httpStatus: httpStatus, body: body, server: server, lastEndpoint: lastEndpoint,
            unread: nil, callFailure: server.sentence, failureDetail: failureDetail, calls: calls,
            elapsedMilliseconds: elapsedMilliseconds,
            retryAfterSeconds: retryAfterSeconds)
    }
}

/// A request to Apple about one receipt. Printing it never shows the receipt or a secret.
package struct AppStoreRequest: Sendable, CustomStringConvertible, CustomReflectable {
    /// The receipt in standard Base64 on one line, such as Apple's `latest_receipt`.
    package var receipt: String
    /// The app's shared secret; if nil, `password` is omitted, which Apple accepts for receipts without subscriptions.
    package var secret: String?
    /// The secret before the last rotation; tried once if Apple answers 21004.
    package var previousSecret: String?
    /// The store to ask first: the one remembered for this receipt, else production, whose builds App Review uses too.
    package var askFirst: StoreEnvironment
    /// Whether sandbox receipts are accepted. If false, sandbox is never asked and 21007 is final.
    package var sandboxAllowed: Bool

    /// Creates a request; every argument except the receipt has a default.
    package init(
        receipt: String, secret: String? = nil, previousSecret: String? = nil,
        askFirst: StoreEnvironment = .production, sandboxAllowed: Bool = true
    ) {
        self.receipt = receipt
        self.secret = secret
        self.previousSecret = previousSecret
        self.askFirst = askFirst
        self.sandboxAllowed = sandboxAllowed
    }

    /// A description that is safe to print.
    package var description: String {
        "AppStoreRequest(\(receipt.utf8.count) characters, askFirst: \(askFirst.rawValue), sandboxAllowed: \(sandboxAllowed))"
    }

    /// A mirror that is safe to dump.
    package var customMirror: Mirror {
        Mirror(self, children: ["askFirst": askFirst, "sandboxAllowed": sandboxAllowed])
    }
}

/// A body that is decoded when it is first asked for. Most answers repeat the last one, which their bytes show.
final class UnreadBody: Sendable {
    private let body: [UInt8]
    private let known = Mutex<Result<VerifyReceiptResponse, NotJSON>?>(nil)

    init(_ body: [UInt8]) { self.body = body }

    /// The decoded body, or why it is not a verifyReceipt answer.
    var decoded: Result<VerifyReceiptResponse, NotJSON> {
        known.withLock { known in
            if let known { return known }
            let result = Result { () throws(NotJSON) in try VerifyReceiptResponse(parsing: body) }
            known = result
            return result
        }
    }
}
