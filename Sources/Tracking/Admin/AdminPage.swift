import Hummingbird
import Ledger
import Logging
import Mustache

/// A page: what is on it, and the frame that every page has.
struct AdminPage {
    /// The heading, which is the window's title too.
    let title: String
    /// The template of the content, without ending.
    let template: String
    /// What the template tells.
    let content: Any
    /// Who looks; nil for somebody who is not signed in.
    var session: AdminSession?
    /// Something that just happened, in one sentence.
    var notice: String?

    /// What the frame tells.
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

    /// The page as an answer.
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
        return [("Overview", "/admin"), ("Customers", "/admin/customers"), ("Incidents", "/admin/incidents")].map {
            Place(title: $0, path: $1, isHere: $0 == title)
        }
    }
}

/// The templates, which are part of the program.
enum AdminTemplates {
    /// All of them; an error when one of them cannot be read.
    static let library = Result {
        MustacheLibrary(
            templates: try [
                "layout": PackageResources.layout_mustache, "sign_in": PackageResources.sign_in_mustache,
                "trouble": PackageResources.trouble_mustache, "table": PackageResources.table_mustache,
                "chart": PackageResources.chart_mustache, "overview": PackageResources.overview_mustache,
                "customers": PackageResources.customers_mustache, "customer": PackageResources.customer_mustache,
                "receipt": PackageResources.receipt_mustache, "incidents": PackageResources.incidents_mustache,
            ].mapValues { try MustacheTemplate(string: String(decoding: $0, as: UTF8.self)) })
    }
}

extension AdminSite {
    /// What a page cannot show, in one sentence.
    struct Trouble {
        let sentence: String
    }

    /// The page that tells an error; what a visitor must not know stays in the log.
    func troublePage(_ error: any Error, session: AdminSession?, _ logger: Logger) throws -> Response {
        let problem = Problem(telling: error)
        if problem.kind == .failed { logger.error("a page failed: \(error)") }
        var page = AdminPage(
            title: problem.kind.title, template: "trouble", content: Trouble(sentence: problem.detail))
        page.session = session
        return try page.response(status: problem.kind.status)
    }
}
