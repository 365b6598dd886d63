import HTTPTypes
import Hummingbird
import NIOCore

/// The context of a request: the connection on which it came.
struct CallerContext: RequestContext {
    var coreContext: CoreRequestContextStorage
    /// The connection's channel.
    let channel: any Channel

    init(source: Source) {
        coreContext = .init(source: source)
        channel = source.channel
    }

    /// Returns the source address of a request. Behind a reverse proxy on this machine, it is the last entry of
    /// `X-Forwarded-For`.
    ///
    /// The caller wrote the earlier entries. A peer on another machine could forge the header, so it is ignored there.
    func source(of request: Request) -> SourceAddress {
        let peer = SourceAddress(channel.remoteAddress)
        guard peer.isLoopback, let name = HTTPField.Name("X-Forwarded-For"),
            let last = request.headers[values: name].last?.split(separator: ",").last
        else { return peer }
        return SourceAddress(last.filter { $0 != " " && $0 != "\t" }) ?? peer
    }
}
