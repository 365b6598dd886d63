import Synchronization

/// A body that is decoded when it is first asked for. Most answers repeat the last one, which their bytes show.
final class UnreadBody: Sendable {
    private let body: [UInt8]
    private let decoded = Mutex<Result<VerifyReceiptResponse, AnswerUnreadable>?>(nil)

    init(_ body: [UInt8]) {
        self.body = body
    }

    /// The decoded body; nil if it is not a verifyReceipt answer.
    var response: VerifyReceiptResponse? { try? result.get() }

    /// The reason there is no response, in one sentence; nil if there is one.
    var failure: String? {
        switch result {
        case .success: nil
        case .failure(let error): "The store answered HTTP 200 with \(error.reason); ask again later."
        }
    }

    private var result: Result<VerifyReceiptResponse, AnswerUnreadable> {
        decoded.withLock { decoded in
            if let decoded { return decoded }
            let result = Result { () throws(AnswerUnreadable) in try VerifyReceiptResponse(parsing: body) }
            decoded = result
            return result
        }
    }
}
