/// The next request, decided from the last status alone: which store, with which secret.
///
/// It allows at most one switch of store and one change of secret, so at most three calls. If a store sends us back to
/// the one we came from, that is Apple's fault and final.
struct StoreRouting: Equatable {
    private(set) var environment: Endpoint
    private(set) var usesPreviousSecret = false
    private let secrets: Secrets
    private let sandboxAllowed: Bool
    private var switched = false

    init(_ request: AppStoreRequest) {
        environment = request.sandboxAllowed ? request.askFirst : .production
        sandboxAllowed = request.sandboxAllowed
        secrets = Secrets(current: request.secret, previous: request.previousSecret)
    }

    /// The password of the next call; nil if there is none to send.
    var password: String? { usesPreviousSecret ? secrets.previous : secrets.current }

    /// Processes the status of the last call; returns true if another call is needed.
    mutating func goesOn(after status: Int?) -> Bool {
        switch (status, environment) {
        case (21007, .production):
            guard sandboxAllowed, !switched else { return false }
            environment = .sandbox
            switched = true
            return true
        case (21008, .sandbox):
            guard !switched else { return false }
            environment = .production
            switched = true
            return true
        case (21004, _):
            guard !usesPreviousSecret, secrets.previous != nil else { return false }
            usesPreviousSecret = true
            return true
        case (_, .production), (_, .sandbox):
            return false
        }
    }
}

/// The shared secrets of an app that are worth trying.
struct Secrets: Equatable {
    let current: String?
    let previous: String?

    /// Treats empty secrets as none; a previous secret equal to the current one is not worth a call.
    init(current: String?, previous: String?) {
        self.current = current.flatMap { $0.isEmpty ? nil : $0 }
        self.previous = previous.flatMap { $0.isEmpty || $0 == current ? nil : $0 }
    }

    /// Returns `text` without any secret in it, in case a server echoed one.
    func hidden(in text: String) -> String {
        [current, previous].compactMap(\.self).filter { $0.utf8.count <= text.utf8.count }
            .reduce(text) { $0.replacing($1, with: "(secret)") }
    }
}
