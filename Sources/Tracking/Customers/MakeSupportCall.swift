package import AppStore
import Logging
package import Subscriptions

/// A call that changes something at Apple's, as a person gets it answered.
package struct MadeSupportCall: Sendable, Hashable {
    package let call: SupportCall
    /// Whether it was made earlier, so that nothing was sent now.
    package let isRepeated: Bool
    /// Whether the check of a receipt became due by it.
    package let isChecked: Bool
}

extension Tracker {
    /// Asks Apple what a person wants to know, who is recorded first. Throws `SupportFailure` where no answer can be shown.
    package func support(
        _ question: SupportQuestion, about app: App, in environment: StoreEnvironment, for customer: String? = nil
    ) async throws -> SupportContents {
        let request = try supportRequest(question, about: app, in: environment)
        try await ledger.audit(
            .supportRead, app: app.bundleID, customer: customer, detail: question.recorded(in: environment))
        let answer = await ask(request, about: app)
        switch answer.outcome {
        case .done(let contents): return contents
        case .refused(let sentence, _): throw SupportFailure(isRefusal: true, sentence: sentence)
        case .failed(let sentence, _): throw SupportFailure(isRefusal: false, sentence: sentence)
        }
    }

    /// Has Apple change something. It is stored first, under an identifier; what was done before is not done again. Throws
    /// `SupportFailure` where Apple does not do it, or nothing is known of it; the outcome is stored too.
    package func support(
        _ change: SupportChange, about app: App, in environment: StoreEnvironment, for customer: String? = nil,
        again: Bool = false
    ) async throws -> MadeSupportCall {
        // What cannot be asked is not stored.
        _ = try supportRequest(.change(change, requestID: ""), about: app, in: environment)
        let wanted = WantedSupportCall(
            kind: change.kind, environment: environment, subject: change.subject, request: change.body)
        let call = try await ledger.support.open(wanted, of: app, for: customer, again: again)
        guard call.outcome != .done else { return MadeSupportCall(call: call, isRepeated: true, isChecked: false) }
        let request = try supportRequest(.change(change, requestID: call.requestID), about: app, in: environment)
        return try await settle(call, await ask(request, about: app), of: change, about: app, in: environment)
    }

    /// Notes that a customer did not consent to a report of a purchase's consumption. Nothing is sent.
    package func withholdConsumption(
        of transactionID: String, about app: App, in environment: StoreEnvironment
    ) async throws -> MadeSupportCall {
        let wanted = WantedSupportCall(
            kind: .consumption, environment: environment, subject: transactionID, request: nil)
        let call = try await ledger.support.withhold(wanted, of: app)
        return MadeSupportCall(call: call, isRepeated: call.outcome == .done, isChecked: false)
    }

    private func settle(
        _ call: SupportCall, _ answer: SupportAnswer, of change: SupportChange, about app: App,
        in environment: StoreEnvironment
    ) async throws -> MadeSupportCall {
        switch answer.outcome {
        case .done(let contents):
            let call = try await ledger.support.close(call, .done, extendedUntil: contents.extendedUntil)
            let isChecked = try await hasten(change, about: app, in: environment)
            return MadeSupportCall(call: call, isRepeated: false, isChecked: isChecked)
        case .refused(let sentence, let code):
            _ = try await ledger.support.close(call, .refused, reason: sentence, code: code)
            throw SupportFailure(isRefusal: true, sentence: sentence)
        case .failed(let sentence, let code):
            _ = try await ledger.support.close(call, .failed, reason: sentence, code: code)
            throw SupportFailure(
                isRefusal: false,
                sentence: "\(sentence) Apple may have done it; the same call again is the same request.")
        }
    }

    /// Has the workers ask about what Apple changed.
    private func hasten(
        _ change: SupportChange, about app: App, in environment: StoreEnvironment
    ) async throws -> Bool {
        switch change {
        case .extend(let id, _), .accountToken(let id, _):
            try await ledger.support.hastenCheck(of: id, in: environment, of: app)
        // Apple tells of each extended subscription itself, and the schedule finds the rest.
        case .extendAll, .consumption: false
        }
    }

    private func ask(_ request: SupportRequest, about app: App) async -> SupportAnswer {
        let answer = await appStore.server.support(request)
        if let seconds = answer.retryAfterSeconds, seconds > 0 {
            await attempt("wait as Apple asks") {
                try await ledger.claims.pauseCalls(
                    request.question.callKind, of: app, in: request.environment, seconds: seconds)
            }
        }
        return answer
    }

    private func supportRequest(
        _ question: SupportQuestion, about app: App, in environment: StoreEnvironment
    ) throws -> SupportRequest {
        guard let stored = try ledger.apps.serverKey(of: app) else {
            throw LedgerError(.notFound, ServerKeyText.missing(of: app.bundleID))
        }
        guard environment == .production || app.sandboxAllowed else {
            throw LedgerError(
                .invalid, "\(app.bundleID) accepts no sandbox purchases; see `perennial app set --sandbox`.")
        }
        return SupportRequest(
            key: ServerKey(stored, of: app), appleAppID: app.appleAppID, environment: environment, question: question,
            turn: { await takeCall(question.callKind, of: app, in: environment) })
    }
}

extension SupportContents {
    fileprivate var extendedUntil: Instant? {
        switch self {
        case .extended(let until): until.map { Instant(milliseconds: $0) }
        case .transactions, .test, .testStatus, .extensionStatus, .accepted: nil
        }
    }
}

/// A support call that Apple did not answer as wished.
package struct SupportFailure: Error, Sendable, Hashable, CustomStringConvertible {
    /// Whether Apple refused it; otherwise it is not known whether Apple did it.
    package let isRefusal: Bool
    /// Why, and what to do.
    package let sentence: String

    package var description: String { sentence }
}

extension SupportQuestion {
    /// The budget that the call is taken from.
    var callKind: CallKind {
        switch self {
        case .testNotification, .testStatus, .extensionStatus, .change(.extendAll, _): .single
        case .transaction, .change(.consumption, _): .transactions
        case .history: .history
        case .refunds: .refunds
        case .change(.extend, _), .change(.accountToken, _): .extensions
        }
    }

    /// What the audit log says of it.
    func recorded(in environment: StoreEnvironment) -> [String: String] {
        let (call, subject): (String, String?) =
            switch self {
            case .testNotification: ("test_notification", nil)
            case .testStatus: ("test_status", nil)
            case .transaction(let id): ("transaction", id)
            case .history(let id): ("history", id)
            case .refunds(let id): ("refunds", id)
            case .extensionStatus(let product, _): ("extension_status", product)
            case .change(let change, _): (change.kind.rawValue, change.subject)
            }
        return ["call": call, "subject": subject, "environment": environment.rawValue].compactMapValues { $0 }
    }
}

extension SupportChange {
    fileprivate var kind: WantedSupportCall.Kind {
        switch self {
        case .extend: .extend
        case .extendAll: .extendAll
        case .consumption: .consumption
        case .accountToken: .accountToken
        }
    }
}
