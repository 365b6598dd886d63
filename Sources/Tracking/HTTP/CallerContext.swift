import HTTPTypes
import Hummingbird
import NIOCore

/// What is known of a request beside itself: on which connection it came.
struct CallerContext: RequestContext {
    var coreContext: CoreRequestContextStorage
    /// The connection.
    let channel: any Channel

    init(source: Source) {
        coreContext = .init(source: source)
        channel = source.channel
    }

    /// Where a request comes from; through a reverse proxy on this machine, what that says last (`X-Forwarded-For`).
    ///
    /// What comes before was said by the caller, and any other machine could say what it likes.
    func source(of request: Request) -> SourceAddress {
        let peer = SourceAddress(channel.remoteAddress)
        guard peer.isLoopback, let name = HTTPField.Name("X-Forwarded-For"),
            let last = request.headers[values: name].last?.split(separator: ",").last
        else { return peer }
        return SourceAddress(last.filter { $0 != " " && $0 != "\t" }) ?? peer
    }
}
