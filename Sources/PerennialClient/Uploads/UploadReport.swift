/// What became of an upload.
public enum UploadReport: Sendable {
    /// The server has answered. Finish what `mayFinish` names, follow the advice, and return: then the queue forgets the
    /// upload.
    case answered(UploadAnswer)
    /// The server does not take it and never will, such as a text that is no receipt, or a refused proof. Nothing was
    /// stored. When the handler returns, the queue forgets the upload.
    case refused(PerennialError)
    /// There is no verdict yet; the queue sends it again after these seconds. What `mayFinish` names may be finished.
    case pending(UploadAnswer, againAfterSeconds: Double)
    /// The server could not be asked; the queue sends it again after these seconds. An error with the disposition
    /// `alarm` needs a person.
    case failing(PerennialError, againAfterSeconds: Double)

    /// Whether the queue forgets the upload when the handler returns.
    public var isFinal: Bool {
        switch self {
        case .answered, .refused: true
        case .pending, .failing: false
        }
    }

    /// What an attempt means.
    /// - Parameters:
    ///   - attempt: The answer, or why there is none.
    ///   - upload: What was sent.
    ///   - wait: Seconds until the next attempt, given what the server advises.
    init(
        _ attempt: Result<UploadAnswer, PerennialError>, to upload: Upload, wait: (_ advised: Double?) -> Double
    ) {
        switch attempt {
        case .success(let answer) where answer.advice == .retry || answer.result == .pending:
            self = .pending(answer, againAfterSeconds: wait(answer.retryAfterSeconds))
        case .success(let answer): self = .answered(answer)
        case .failure(let error):
            switch error.disposition {
            case .retry(let seconds): self = .failing(error, againAfterSeconds: wait(seconds))
            case .alarm: self = .failing(error, againAfterSeconds: wait(nil))
            // Only a service's upload names something that the server may not find: an order of the customer. Otherwise
            // the address is wrong, or the server is older.
            case .reject where error.problem?.kind == .notFound && !upload.isAboutCustomersOrder:
                self = .failing(error, againAfterSeconds: wait(nil))
            case .reject: self = .refused(error)
            }
        }
    }

    /// Seconds until the next attempt; nil when there is none.
    var againAfterSeconds: Double? {
        switch self {
        case .answered, .refused: nil
        case .pending(_, let seconds), .failing(_, let seconds): seconds
        }
    }
}
