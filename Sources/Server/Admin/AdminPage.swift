import Hummingbird
import Ledger
import Logging
import Mustache

/// A page: its content within the frame that every page has.
struct AdminPage {
    /// The heading and the window's title.
    let title: String
    /// The name of the content's template, without extension.
    let template: String
    /// The values for the template.
    let content: Any
    /// The visitor's session; nil for a visitor who is not signed in.
    var session: AdminSession?
    /// The result of the visitor's last action, in one sentence.
    var notice: String?

    /// The values for the frame.
    private struct Frame {
        let title: String
        let content: String
        let formToken: String?
        let notice: String?
        let places: [Place]
    }

    /// An entry of the menu.
    private struct Place {
        let title: String
        let path: String
        let isHere: Bool
    }

    /// Returns the page as a response. Throws when a template cannot be read or is missing.
    func response(status: HTTPResponse.Status = .ok) throws -> Response {
        let library = try AdminTemplates.library.get()
        guard let inner = library.render(content, withTemplate: template),
            let page = library.render(
                Frame(
                    title: title, content: inner, formToken: session?.formToken, notice: notice, places: places),
                withTemplate: "layout")
        else { throw Problem(.failed, "The page has no template \(template).") }
        return Response(
            status: status, headers: [.contentType: "text/html; charset=utf-8"],
            body: ResponseBody(byteBuffer: ByteBuffer(string: page)))
    }

    private var places: [Place] {
        guard session != nil else { return [] }
        return [
            ("Overview", "/admin"), ("Customers", "/admin/customers"), ("Retention", "/admin/retention"),
            ("Cohorts", "/admin/cohorts"), ("Trials", "/admin/trials"), ("Incidents", "/admin/incidents"),
            ("Webhooks", "/admin/webhooks"),
        ].map { Place(title: $0, path: $1, isHere: $0 == title) }
    }
}

/// The templates, which are embedded in the program.
enum AdminTemplates {
    /// All templates, or an error when one of them cannot be read.
    static let library = Result {
        MustacheLibrary(templates: try EmbeddedFiles.templates.mapValues { try MustacheTemplate(string: $0) })
    }
}

extension AdminPage {
    /// The error of a page, in one sentence.
    private struct PageError {
        let sentence: String
    }

    /// Returns the page that shows an error. Details that a visitor must not know stay in the log.
    static func response(telling error: any Error, session: AdminSession?, _ logger: Logger) throws -> Response {
        let problem = Problem(telling: error)
        if problem.kind == .failed { logger.error("a page failed: \(error)") }
        return try response(telling: problem, session: session)
    }

    /// Returns the page that shows a problem, with its headers.
    static func response(telling problem: Problem, session: AdminSession? = nil) throws -> Response {
        var page = try AdminPage(
            title: problem.kind.title, template: "error", content: PageError(sentence: problem.detail),
            session: session
        ).response(status: problem.kind.status)
        for field in problem.headers where page.headers[field.name] == nil { page.headers.append(field) }
        return page
    }
}

/// A file for the pages, embedded in the program.
struct AdminFile: Sendable {
    let path: String
    let type: String
    let bytes: [UInt8]

    static let style = AdminFile(
        path: "/admin/style.css", type: "text/css; charset=utf-8", bytes: Array(EmbeddedFiles.styleCss.utf8))
    static let icon = AdminFile(
        path: "/admin/icon.svg", type: "image/svg+xml", bytes: Array(EmbeddedFiles.iconSvg.utf8))

    /// Adds the route of the file, which a browser may cache for five minutes.
    func addRoute(to routes: RouterGroup<CallerContext>) {
        routes.get(RouterPath(path)) { _, _ in
            Response(
                status: .ok, headers: [.contentType: type, .cacheControl: "public, max-age=300"],
                body: ResponseBody(byteBuffer: ByteBuffer(bytes: bytes)))
        }
    }
}
