//! Request-response flows: requests over one connection, and web page loads (`begin_page`).

use super::{Kind, Page, RequestResponse};
use crate::application::{Answer, Ask, Program};
use crate::world::World;
use tcplab_model::schema::{Requests, WebPlan};
use tcplab_tcp::Endpoint;
use tcplab_units::Duration;
use tcplab_workload::web;

impl<'a> Page<'a> {
    pub fn new(spec: &'a WebPlan) -> Self {
        Self { spec, sessions: web::sessions(spec).collect(), begun: 0 }
    }
}

impl<'a> World<'a> {
    /// Opens no connection yet: prepares that of a request flow.
    pub fn prepare_requests(&mut self, number: usize, spec: &'a Requests) -> Kind<'a> {
        let answer = Answer::to(spec.request.0, spec.response.0, !spec.server_time.is_zero());
        let programs = [Program::Answer(answer), Program::Ask(Ask::default())];
        let pair = self.add_connection(number, programs, false);
        Kind::Requests(RequestResponse { pair, spec, asked: 0 })
    }

    /// Sends the first request.
    pub fn begin_requests(&mut self, number: usize) {
        let Kind::Requests(RequestResponse { pair, .. }) = self.flows[number].kind else { return };
        self.ask(pair);
        self.open(2 * pair + 1);
        self.update_memory_pressure(2 * pair + 1);
        self.serve(2 * pair + 1);
    }

    /// Sends the next request of a flow over the connection.
    fn ask(&mut self, pair: usize) {
        let flow = self.connections.pairs[pair].flow;
        let Kind::Requests(requests) = &mut self.flows[flow].kind else { return };
        let (request, response) = (requests.spec.request.0, requests.spec.response.0);
        let which = requests.asked;
        requests.asked += 1;
        self.note_begin(pair, which, response);
        if let Program::Ask(ask) = &mut self.connections.ends[2 * pair + 1].program {
            ask.begin(request, response);
        }
    }

    /// Begins to load a page, over as many connections as are allowed.
    pub fn begin_page(&mut self, number: usize) {
        let Kind::Web(page) = &self.flows[number].kind else { return };
        for _ in 0..page.spec.at_once {
            self.begin_session_on_new_connection(number);
        }
    }

    /// The next session, if one is left: its number and the sizes of request and response.
    fn take_session(&mut self, number: usize) -> Option<(u64, u64, u64)> {
        let Kind::Web(page) = &mut self.flows[number].kind else { return None };
        let session = page.sessions.get(page.begun)?;
        page.begun += 1;
        Some((page.begun as u64 - 1, session.request, session.size))
    }

    fn begin_session_on_new_connection(&mut self, number: usize) {
        let Some((which, request, response)) = self.take_session(number) else { return };
        let is_slow = self.server_time(number).is_some();
        // The size of the request is known only when the request comes.
        let answer = Answer::to(request, response, is_slow).polling();
        let programs = [Program::Answer(answer), Program::Ask(Ask::default())];
        let pair = self.add_connection(number, programs, true);
        self.begin_session(pair, (which, request, response));
        self.open(2 * pair + 1);
        self.update_memory_pressure(2 * pair + 1);
        self.serve(2 * pair + 1);
    }

    fn begin_session(&mut self, pair: usize, (which, request, response): (u64, u64, u64)) {
        self.note_begin(pair, which, response);
        if let Program::Answer(answer) = &mut self.connections.ends[2 * pair].program {
            answer.expect(request, response);
        }
        if let Program::Ask(ask) = &mut self.connections.ends[2 * pair + 1].program {
            ask.begin(request, response);
        }
    }

    /// A response has arrived in full at this end.
    pub fn on_answered(&mut self, end: usize) {
        let (pair, now) = (end / 2, self.network.now());
        self.note_end(pair);
        let number = self.connections.pairs[pair].flow;
        self.flows[number].completed += 1;
        match &self.flows[number].kind {
            Kind::Requests(requests) if requests.has_more() => {
                let think = requests.spec.think;
                if think.is_zero() {
                    self.ask(pair);
                } else {
                    self.set_alarm(end, now + think);
                }
            }
            Kind::Web(page) if page.spec.persistent => match self.take_session(number) {
                Some(session) => self.begin_session(pair, session),
                None => self.leave(end),
            },
            Kind::Web(_) => {
                self.leave(end);
                // The FIN leaves before the next SYN.
                self.serve(end);
                self.begin_session_on_new_connection(number);
            }
            _ => self.finish(end),
        }
    }

    /// The end sends no more requests, and waits for the other one to close too.
    fn finish(&mut self, end: usize) {
        self.end_requests(end).close();
    }

    /// The end sends no more requests, and does not wait.
    fn leave(&mut self, end: usize) {
        self.end_requests(end).orphan();
    }

    fn end_requests(&mut self, end: usize) -> &mut Endpoint {
        let end = &mut self.connections.ends[end];
        if let Program::Ask(ask) = &mut end.program {
            ask.finish();
        }
        &mut end.endpoint
    }

    /// A request has arrived at this end, whose server takes time to respond.
    pub fn on_asked(&mut self, end: usize) {
        let time = self.server_time(self.connections.pairs[end / 2].flow);
        self.set_alarm(end, self.network.now() + time.unwrap_or(Duration::ZERO));
    }

    /// The server time of a flow, if it has one.
    fn server_time(&self, number: usize) -> Option<Duration> {
        let time = match &self.flows[number].kind {
            Kind::Requests(requests) => requests.spec.server_time,
            Kind::Web(page) => page.spec.server_time,
            _ => Duration::ZERO,
        };
        Some(time).filter(|time| !time.is_zero())
    }

    /// The timer of a program at this end has expired: it sends a request or a response.
    pub fn on_alarm(&mut self, end: usize) {
        match &mut self.connections.ends[end].program {
            Program::Ask(_) => self.ask(end / 2),
            Program::Answer(answer) => answer.begin(),
            Program::Send(_) | Program::Receive(_) => return,
        }
        self.update_memory_pressure(end);
        self.act(end);
    }

    /// The connection of this end broke.
    pub fn on_broken(&mut self, end: usize) {
        let pair = end / 2;
        if std::mem::replace(&mut self.connections.pairs[pair].is_done, true) {
            return;
        }
        self.note_end(pair);
        let number = self.connections.pairs[pair].flow;
        match &self.flows[number].kind {
            // Other connections fetch the remaining objects.
            Kind::Web(page) if !page.spec.persistent => {
                self.begin_session_on_new_connection(number);
            }
            _ => self.on_done(pair),
        }
    }
}
