package import AppStore
import Subscriptions
import Synchronization

/// An App Store in this process that answers by a script and counts the calls.
///
/// It replaces the client, so there is no HTTP. `AppStoreTests` tests the client itself, over a socket: it has
/// `ScriptedHTTPStore`.
package final class ScriptedStore: Sendable {
    /// Answers one request. It may take its time.
    package typealias Script = @Sendable (AppStoreRequest) async -> AppStoreAnswer

    private let script: Mutex<Script>
    private let calls = Mutex(0)

    /// Creates a store that answers by a script.
    package init(_ script: @escaping Script) {
        self.script = Mutex(script)
    }

    /// Creates a store that gives every call the same body after a pause, or no answer.
    package convenience init(saying body: String? = nil, after pause: Duration = .zero) {
        self.init { _ in
            // A call that is cancelled ends early, as the real client's does.
            try? await Task.sleep(for: pause)
            return .saying(body)
        }
    }

    /// The calls so far.
    package var callCount: Int { calls.withLock { $0 } }

    /// Gives later calls this body at once, or no answer.
    package func say(_ body: String?, usedPreviousSecret: Bool = false) {
        let answer = AppStoreAnswer.saying(body, usedPreviousSecret: usedPreviousSecret)
        let next: Script = { _ in answer }
        script.withLock { $0 = next }
    }

    /// The client that asks this store.
    package var client: AppStoreClient {
        AppStoreClient { [self] request in
            // A test that sees the call may change the script: this call has its own by then.
            let answer = script.withLock { $0 }
            calls.withLock { $0 += 1 }
            return await answer(request)
        }
    }
}

extension AppStoreClient {
    /// Returns an App Store that always answers with the same body, or never answers.
    package static func answering(_ body: String?) -> AppStoreClient {
        AppStoreClient { _ in .saying(body) }
    }
}

extension AppStoreAnswer {
    /// Returns what a call with this body gives; without one Apple did not answer.
    package static func saying(_ body: String?, usedPreviousSecret: Bool = false) -> AppStoreAnswer {
        let bytes = Array((body ?? "").utf8)
        return AppStoreAnswer(
            environment: .production, httpStatus: body == nil ? nil : 200, body: bytes,
            failure: body == nil ? "The App Store did not answer." : nil, calls: 1,
            usedPreviousSecret: usedPreviousSecret, elapsedMilliseconds: 1)
    }
}
