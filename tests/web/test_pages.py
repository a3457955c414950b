#!/usr/bin/env python3
"""The web page of `playfs serve` as people use it: in a browser, by keyboard, on a narrow screen, in dark mode."""
import hashlib
import os
import pathlib
import unittest

import fixture
from browser import AVAILABLE, Browser

HOSTILE = '<script>alert(1)</script>"\' onload=x \u202egnp.exe'
WIDE, NARROW = 1280, 360

# Requirements on every page; the script returns the violations, in words.
SOUND = r'''
const wrong = [];
const say = (what, element) => wrong.push(what + ': ' + (element ? element.outerHTML.slice(0, 120) : ''));
const count = selector => document.querySelectorAll(selector).length;
if (!document.title.trim()) say('no title');
if (document.documentElement.lang !== 'en') say('no language');
if (count('h1') !== 1) say('not one h1');
for (const [name, selector] of [['banner', 'body > header'], ['main', 'body > main'], ['footer', 'body > footer'],
                                ['navigation', 'header nav[aria-label]']])
  if (count(selector) !== 1) say('not one ' + name);
for (const nav of document.querySelectorAll('nav')) if (!nav.ariaLabel) say('a nav without a name', nav);
if (count('script, style, [style], iframe, object, embed')) say('something inline');
let level = 1;
for (const heading of document.querySelectorAll('h1, h2, h3, h4')) {
  const own = Number(heading.tagName[1]);
  if (own > level + 1) say('a heading level left out', heading);
  level = own;
}
for (const link of document.querySelectorAll('a')) if (!link.textContent.trim()) say('a link without words', link);
for (const table of document.querySelectorAll('table'))
  if (!table.querySelector('th[scope]')) say('a table without headers', table);
for (const drawing of document.querySelectorAll('svg'))
  if (drawing.getAttribute('role') !== 'img' || !drawing.querySelector('title').textContent) say('a drawing without words', drawing);
for (const field of document.querySelectorAll('select, input')) if (!field.labels.length) say('a field without a label', field);
for (const time of document.querySelectorAll('time')) if (!/^\d{4}-.*Z$/.test(time.dateTime)) say('a time that no program reads', time);
const ids = [...document.querySelectorAll('[id]')].map(element => element.id);
if (new Set(ids).size !== ids.length) say('an id given twice');
for (const box of document.querySelectorAll('[aria-labelledby]'))
  if (!document.getElementById(box.getAttribute('aria-labelledby'))) say('a label that is not there', box);
const foreign = performance.getEntriesByType('resource').filter(entry => new URL(entry.name).origin !== location.origin);
if (foreign.length) say('something loaded from elsewhere');
if (document.documentElement.scrollWidth > innerWidth) say('wider than the window: ' + document.documentElement.scrollWidth);
return wrong;
'''

# Text with a WCAG contrast below 4.5 to 1.
FAINT = r'''
const channels = colour => colour.match(/[\d.]+/g).map(Number);
const luminance = ([r, g, b]) => [r, g, b].map(c => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
  .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
const ground = element => {
  for (; element; element = element.parentElement) {
    const colour = channels(getComputedStyle(element).backgroundColor);
    if (colour.length < 4 || colour[3] > 0) return colour;
  }
  return [255, 255, 255];
};
const faint = [];
const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (texts.nextNode()) {
  const element = texts.currentNode.parentElement;
  if (!texts.currentNode.data.trim() || !element.checkVisibility() || element.closest('svg, option')) continue;
  const [light, dark] = [luminance(channels(getComputedStyle(element).color)), luminance(ground(element))].sort((a, b) => b - a);
  const contrast = (light + 0.05) / (dark + 0.05);
  if (contrast < 4.5) faint.push(contrast.toFixed(2) + ' ' + element.outerHTML.slice(0, 100));
}
return faint;
'''


def inline(text):
    return {'h': hashlib.sha256(text.encode()).hexdigest(), 's': len(text.encode()), 'inline': text}


@unittest.skipUnless(AVAILABLE, 'chromium and chromedriver are not installed')
class Pages(fixture.Fixture):
    @classmethod
    def setUpClass(cls):
        cls.browser = Browser()
        cls.addClassCleanup(cls.browser.close)

    def setUp(self):
        super().setUp()
        self.api = self.serve()
        self.make_world()
        self.browser.show(WIDE)
        self.browser.console()

    def make_world(self):
        create = self.api.create
        agent = create('agents', handle='wren', bio='Small parsers, careful commits.')
        create('agents', handle=HOSTILE, bio=HOSTILE)
        self.project = create('projects', name='kiln', description='An expression language with a store.', license='MIT')['id']
        main = 'int main(void) {\n  return 0;\n}\n'
        files = {'README.md': inline('# Kiln\n\nA tiny language.\n'), 'src/main.c': inline(main)}

        def publish(parents, message, files, agent='wren', **fields):
            return create('revisions', project=self.project, parents=parents, agent=agent, message=message,
                          manifest={'files': files}, **fields)['id']

        first = publish([], 'Begin', files)
        longer = {**files, 'src/main.c': inline(main.replace('0', '1' * 300)), 'docs/' + 'deep/' * 12 + 'file.txt': inline('x\n')}
        left = publish([first], 'A message much longer than any line of a narrow screen could hold without an end', longer)
        right = publish([first], 'Another line', {**files, 'tool.sh': {**inline('#!/bin/sh\n'), 'm': '100755'}}, 'otter')
        publish([first], HOSTILE, {HOSTILE.replace('/', ''): inline(HOSTILE)}, HOSTILE)
        wrong = {**inline('these'), 'h': hashlib.sha256(b'those').hexdigest()}
        self.head = publish([left, right], 'Merge both\n\nWith a body.',
                            {**longer, 'wrong.txt': wrong, 'logo.png': {'s': 3, 'e': 'base64', 'inline': 'AAH/'}, '../out': inline('x')},
                            state={'evaluations': 128})
        self.first = first
        self.api.call('PATCH', f'/projects/{self.project}', {'latest_revision': self.head})
        for number in range(40):
            create('projects', name=f'seedling {number}', summary='One of many. ' * 20)
        thread = create('threads', title='What comes next?', agent='wren', kind='collab')['id']
        above = ''
        for number in range(9):
            above = create('messages', thread=thread, parent=above, agent='otter', body=f'Reply {number}\n\nwith a link',
                           links=['https://example.org/' + 'long' * 40, 'javascript:alert(1)'])['id']
        create('messages', thread=thread, parent='', agent=HOSTILE, body=HOSTILE)
        create('messages', thread=thread, parent='nowhere', agent='w' * 300, body=f'@wren {"long" * 100} {HOSTILE}',
               mentions=['wren', HOSTILE, 'm' * 300], links=['projects/' + self.project], **{'f' * 300: 'v' * 300})
        self.message = above
        letter = create('domain_mail', agent='wren', kind='idea', subject='A board', body='It would be good.\n' * 3)['id']
        create('domain_mail', agent=HOSTILE, kind='question', subject='s' * 300, body='b' * 3000)
        space = create('spaces', name='Harbour', region={'x': 1, 'tiles': ['water'] * 30})['id']
        revision = f'/projects/{self.project}/revisions/{self.head}'
        self.pages = {
            'home': '/', 'projects': '/projects', 'project': f'/projects/{self.project}',
            'history': f'/projects/{self.project}/log', 'revision': revision, 'file': f'{revision}/files/src/main.c',
            'wrong': f'{revision}/files/wrong.txt', 'binary': f'{revision}/files/logo.png',
            'difference': f'/projects/{self.project}/diff/{self.first}..{self.head}', 'threads': '/threads',
            'thread': f'/threads/{thread}', 'message': f'/threads/{thread}/messages/{above}',
            'folder': f'{revision}/files/docs/deep', 'handle': '/agents/otter', 'agents': '/agents', 'agent': f'/agents/{agent["id"]}', 'mail': '/mail',
            'letter': f'/mail/{letter}', 'spaces': '/spaces', 'space': f'/spaces/{space}', 'records': '/records',
            'collection': '/records/messages', 'record': f'/records/projects/{self.project}',
        }

    def open(self, path):
        self.browser.open(self.api.origin + path)

    def take_picture(self, name):
        if folder := os.environ.get('PLAYFS_PICTURES'):
            pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
            self.browser.screenshot(pathlib.Path(folder) / f'{name}.png')

    def test_every_page_is_sound(self):
        titles = set()
        for width in (WIDE, NARROW):
            for dark in (False, True):
                self.browser.show(width, dark)
                for name, path in self.pages.items():
                    with self.subTest(page=name, width=width, dark=dark):
                        self.open(path)
                        self.take_picture(f'{name}-{width}-{"dark" if dark else "light"}')
                        self.assertEqual(self.browser.evaluate(SOUND), [])
                        self.assertEqual(self.browser.evaluate(FAINT), [])
                        self.assertEqual(self.browser.console(), [])
                        titles.add(self.browser.evaluate('return document.title'))
        self.assertGreaterEqual(len(titles), len(self.pages) - 1, 'titles do not tell pages apart')

    def test_what_is_not_there_looks_the_same(self):
        self.open('/projects/nope')
        self.assertEqual(self.browser.evaluate(SOUND), [])
        self.assertIn('404', self.browser.evaluate('return document.body.innerText'))

    def test_keyboard_goes_from_the_top_down(self):
        self.open('/projects')
        focused = 'return document.activeElement.textContent.trim()'
        self.browser.press('\ue004')
        self.assertEqual(self.browser.evaluate(focused), 'Skip to the content')
        shown = self.browser.evaluate('const box = document.activeElement.getBoundingClientRect(); return [box.top, box.width]')
        self.assertGreaterEqual(shown[0], 0, 'the skip link is not in view while it has the focus')
        for words in ('Playground', 'Projects', 'Threads', 'Agents', 'Mail', 'Spaces', 'Records', 'seedling 39'):
            self.browser.press('\ue004')
            self.assertEqual(self.browser.evaluate(focused), words)
            outline = self.browser.evaluate('return getComputedStyle(document.activeElement).outlineStyle')
            self.assertEqual(outline, 'solid', f'{words}: the focus cannot be seen')

    def test_skip_link_leads_to_the_content(self):
        self.open('/projects')
        self.browser.press('\ue004')
        self.browser.press('\ue007')
        self.assertEqual(self.browser.evaluate('return document.activeElement.id'), 'main')
        self.browser.press('\ue004')
        self.assertEqual(self.browser.evaluate('return document.activeElement.textContent'), 'seedling 39')

    def test_long_lists_are_paged(self):
        self.open('/projects')
        self.browser.click('a[rel=next]')
        self.assertIn('kiln', self.browser.evaluate('return document.querySelector("main").innerText'))

    def test_two_revisions_are_compared_without_a_script(self):
        self.browser.develop('Emulation.setScriptExecutionDisabled', value=True)
        self.addCleanup(self.browser.develop, 'Emulation.setScriptExecutionDisabled', value=False)
        self.open(f'/projects/{self.project}/log')
        self.browser.click('summary')
        self.browser.click('form button')
        self.eventually(lambda: '..' in self.browser.url(), 'the difference is shown')
        self.assertIn(f'/projects/{self.project}/diff/', self.browser.url())

    def test_graph_joins_each_revision_to_its_parents(self):
        self.open(f'/projects/{self.project}/log')
        circles, rows, paths = self.browser.evaluate(
            'return [".graph circle", ".revisions > li", ".graph path"].map(s => document.querySelectorAll(s).length)')
        self.assertEqual((circles, rows, paths), (5, 5, 5))
        # Each circle is beside its own row, at any font size.
        apart = self.browser.evaluate('''
            const middle = element => { const box = element.getBoundingClientRect(); return box.top + box.height / 2; };
            const rows = [...document.querySelectorAll(".revisions > li")];
            return Math.max(...[...document.querySelectorAll(".graph circle")].map((c, i) => Math.abs(middle(c) - middle(rows[i]))));''')
        self.assertLess(apart, 3)

    def test_conversation_is_walked_by_links_alone(self):
        self.open(self.pages['thread'])
        self.browser.click(f'#message-{self.message} .permalink')
        self.assertTrue(self.browser.url().endswith(f'/messages/{self.message}'))
        self.browser.click('.above li:last-child a')
        self.assertIn('Reply 7', self.browser.evaluate('return document.querySelector(".message").innerText'))
        self.browser.click('p.more a')
        self.assertRegex(self.browser.url(), '/threads/[^/]+#message-')
        self.browser.click('.message:target a.agent')
        self.assertTrue(self.browser.url().endswith('/agents/otter'))

    def test_words_of_strangers_stay_words(self):
        for path in ('/agents', self.pages['history'], self.pages['thread'], self.pages['project']):
            self.open(path)
            self.assertIn('<script>alert(1)</script>', self.browser.evaluate('return document.body.innerText'))
            self.assertEqual(self.browser.console(), [])


if __name__ == '__main__':
    fixture.main()
