import HTTPTypes
import Hummingbird
import Ledger
import NIOCore
import Subscriptions

/// The context of every request: the connection on which it came, and the key or the session once it is authenticated.
struct CallerContext: RequestContext {
    var coreContext: CoreRequestContextStorage
    let channel: any Channel
    /// The live API key of the request. Nil before authentication, and for routes without it.
    var key: APIKey?
    /// The running admin session of the request. Nil before it is read, and for routes without one.
    var session: AdminSession?
    /// The form that the session's browser sent. Nil before it is read, and for requests without one.
    var form: AdminForm?

    init(source: Source) {
        coreContext = .init(source: source)
        channel = source.channel
    }

    /// Returns the source address of a request, which came through `proxies` or directly.
    func source(of request: Request, behind proxies: TrustedProxies) -> SourceAddress {
        let name = HTTPField.Name("X-Forwarded-For")
        return proxies.source(of: channel.remoteAddress, forwarded: name.map { request.headers[values: $0] } ?? [])
    }
}

/// The context of a request with a live API key.
struct KeyContext: ChildRequestContext {
    var coreContext: CoreRequestContextStorage
    let key: APIKey

    /// Creates the context of a request that `APIKeyAuthenticator` passed. Throws a problem for any other.
    init(context: CallerContext) throws {
        guard let key = context.key else { throw Problem.keyMissing }
        coreContext = context.coreContext
        self.key = key
    }
}

/// The context of a request about one app: the app that the path names in `{bundle}`.
struct AppContext: ChildRequestContext {
    var coreContext: CoreRequestContextStorage
    /// The API key, which is good for the app.
    let key: APIKey
    let bundleID: BundleID

    /// Creates the context. Throws a problem when the key is for another app alone.
    init(context: KeyContext) throws {
        let bundleID = BundleID(try context.parameters.decoded("bundle"))
        if let only = context.key.bundleID, only != bundleID {
            throw Problem(.forbidden, "The API key is for the app \(only) alone.")
        }
        coreContext = context.coreContext
        key = context.key
        self.bundleID = bundleID
    }
}
